"""The obvious aiohttp reverse proxy, to compare with: ClientSession behind, StreamResponse in front."""

import sys

from aiohttp import ClientSession, TCPConnector, web

HOP_BY_HOP = {"connection", "keep-alive", "te", "transfer-encoding", "upgrade", "host"}


async def start(upstream: str) -> web.Application:
    app = web.Application(client_max_size=64 * 2**20)

    async def session(app: web.Application):
        async with ClientSession(connector=TCPConnector(limit=0)) as client:
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
    web.run_app(start(sys.argv[2]), host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
