"""The obvious aiohttp reverse proxy, to compare with: ClientSession behind, StreamResponse in front.

python plain.py PORT UPSTREAM [CA_FILE]
"""

import ssl
import sys

from aiohttp import ClientSession, TCPConnector, web

HOP_BY_HOP = {"connection", "keep-alive", "te", "transfer-encoding", "upgrade", "host"}


def proxy(upstream: str, ca_file: str | None) -> web.Application:
    """It relays everything to ``upstream``, a URL without a path."""
    app = web.Application(client_max_size=64 * 2**20)

    async def session(app: web.Application):
        context = ssl.create_default_context(cafile=ca_file) if ca_file is not None else True
        async with ClientSession(connector=TCPConnector(limit=0, ssl=context), auto_decompress=False) as client:
            app["client"] = client
            yield

    async def relay(request: web.Request) -> web.StreamResponse:
        fields = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        body = await request.read()
        async with request.app["client"].request(
            request.method, upstream + request.path_qs, headers=fields, data=body, allow_redirects=False
        ) as answer:
            response = web.StreamResponse(status=answer.status, reason=answer.reason)
            for name, value in answer.headers.items():
                if name.lower() not in HOP_BY_HOP:
                    response.headers.add(name, value)
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            await response.write_eof()
            return response

    app.cleanup_ctx.append(session)
    app.router.add_route("*", "/{path:.*}", relay)
    return app


if __name__ == "__main__":
    import warnings

    import uvloop

    warnings.simplefilter("ignore")
    uvloop.install()
    served = proxy(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
    web.run_app(served, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
