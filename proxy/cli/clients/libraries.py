"""Libraries and tools to build with."""

from typing import Final

from proxy.cli.clients.entry import Client, Snippet

_NAMED = "The name in the path is the conversation: one client object a conversation, each with its own."

LIBRARIES: Final = (
    Client(
        "openai-sdk",
        "OpenAI SDK for Python",
        (
            Snippet(
                "your program",
                "python",
                """import os
from openai import OpenAI

client = OpenAI(
    base_url="%NAMED%",
    api_key=os.environ["OPENCODE_API_KEY"],
    default_headers={"User-Agent": "my-agent/1.0"},
)
answer = client.chat.completions.create(model="glm-5.3", messages=[{"role": "user", "content": "hello"}])
print(answer.choices[0].message.content)
""",
            ),
        ),
        "Nothing that names a conversation.",
        _NAMED
        + ' Or extra_headers={"x-session-id": conversation} with each request. The operator asks for a User-Agent '
        "of your own.",
        "openai 3.57.0",
    ),
    Client(
        "openai-sdk-node",
        "OpenAI SDK for Node",
        (
            Snippet(
                "your program, as an ES module",
                "js",
                """import OpenAI from "openai";

const client = new OpenAI({
  baseURL: "%NAMED%",
  apiKey: process.env.OPENCODE_API_KEY,
  defaultHeaders: { "User-Agent": "my-agent/1.0" },
});
const answer = await client.chat.completions.create({
  model: "glm-5.3",
  messages: [{ role: "user", content: "hello" }],
});
console.log(answer.choices[0].message.content);
""",
            ),
        ),
        "Nothing that names a conversation.",
        _NAMED + " Or headers in the options of each request.",
        "openai (npm) 6.49.0 and 7.59.0",
    ),
    Client(
        "langchain",
        "LangChain",
        (
            Snippet(
                "your program",
                "python",
                """import os
from langchain_openai import ChatOpenAI

model = ChatOpenAI(
    model="glm-5.3",
    base_url="%GO%",
    api_key=os.environ["OPENCODE_API_KEY"],
    default_headers={"User-Agent": "my-agent/1.0", "x-session-id": "my-conversation-0001"},
    use_responses_api=False,
)
print(model.invoke("hello").content)
""",
            ),
        ),
        "Nothing by itself; here the header that you give the model object.",
        "One model object a conversation, each with its own x-session-id; or /s/<name>/ in the base URL.",
        "langchain-openai 1.7.4",
    ),
    Client(
        "litellm",
        "LiteLLM",
        (
            Snippet(
                "your program, with the SDK",
                "python",
                """import os
import litellm

answer = litellm.completion(
    model="openai/glm-5.3",
    api_base="%NAMED%",
    api_key=os.environ["OPENCODE_API_KEY"],
    extra_headers={"User-Agent": "my-agent/1.0"},
    messages=[{"role": "user", "content": "hello"}],
)
print(answer.choices[0].message.content)
""",
            ),
            Snippet(
                "config.yaml of the LiteLLM proxy, with ocpool behind it",
                "yaml",
                """model_list:
  - model_name: glm-5.3
    litellm_params:
      model: openai/glm-5.3
      api_base: %GO%
      api_key: os.environ/OPENCODE_API_KEY
litellm_settings:
  model_group_settings:
    forward_client_headers_to_llm_api: [glm-5.3]
""",
            ),
        ),
        "The SDK: nothing. The proxy: its clients' x- fields, once forwarding is on for the model.",
        "The proxy forwards nothing by default, and ids that it makes for each request are never taken for a "
        "conversation. It wants a key of its own for its clients, LITELLM_MASTER_KEY.",
        "litellm 1.110.2 (the SDK), 1.108.7 (the proxy)",
    ),
    Client(
        "curl",
        "curl",
        (
            Snippet(
                "the shell",
                "sh",
                """curl -sS %NAMED%/chat/completions \\
  -H "Authorization: Bearer $OPENCODE_API_KEY" -H 'Content-Type: application/json' -H 'User-Agent: my-agent/1.0' \\
  -d '{"model": "glm-5.3", "messages": [{"role": "user", "content": "hello"}]}'
""",
            ),
        ),
        "Nothing.",
        "The name in the path is the conversation.",
        "curl 7.88.1",
    ),
)
