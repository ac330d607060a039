"""Drives the published Python client, unmodified, as a script of an integrator would.

Usage: python client.py < job.json. The job: {base, key, chains: [{id, rpc}], user, currency, amount, wrong}.
Prints one JSON object: what each of the client's functions said.
"""

import asyncio
import json
import sys

import httpx
from relay_link import AsyncRelayClient, RelayAPIError, RelayClient, TradeType

job = json.load(sys.stdin)
origin, destination = job["chains"]
route = {
    "origin_chain_id": origin["id"],
    "destination_chain_id": destination["id"],
    "origin_currency": job["currency"],
    "destination_currency": job["currency"],
    "amount": job["amount"],
    "trade_type": TradeType.EXACT_INPUT,
    "user": job["user"],
}


def rpc(method, *params):
    """Asks the origin's node, which signs for everybody who is impersonated."""
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = httpx.post(origin["rpc"], json=call).json()
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["result"]


def deposit(quote):
    """Sends what the quote says, as the client leaves to its user; the id of the request."""
    for step in quote.steps:
        for item in step.items:
            data = item.data
            call = {name: data[name] for name in ("from", "to", "data")}
            rpc("eth_sendTransaction", {**call, "value": hex(int(data["value"]))})
    return quote.steps[0].request_id


def shown(model):
    return model.model_dump(by_alias=True, mode="json")


def refused(ask):
    try:
        return {"answer": shown(ask())}
    except RelayAPIError as error:
        return {"status": error.status_code, "message": error.message, "body": error.body}


def life():
    with RelayClient(base_url=job["base"], api_key=job["key"], timeout=10) as client:
        quote = client.get_quote(**route, recipient=job["user"])
        request = deposit(quote)
        told = {
            "chains": [shown(chain) for chain in client.get_chains()],
            "tokenPrice": shown(client.get_token_price(address=job["currency"], chain_id=origin["id"])),
            "price": shown(client.get_price(**route)),
            "quote": shown(quote),
            "status": shown(client.poll_status(request_id=request, interval=0.5, timeout=60)),
            "wrong": refused(lambda: client.get_quote(**{**route, "destination_currency": job["wrong"]})),
            "unknown": refused(lambda: client.get_status(request_id="0x" + "77" * 32)),
        }
        page = client.get_requests(user=job["user"], limit=1)
        rest = client.get_requests(user=job["user"], limit=1, continuation=page.continuation)
        return {**told, "requests": [shown(page), shown(rest)]}


async def refund():
    async with AsyncRelayClient(base_url=job["base"], api_key=job["key"], timeout=10) as client:
        quote = await client.get_quote(**route, referrer="debug-force-refund")
        request = deposit(quote)
        return shown(await client.poll_status(request_id=request, interval=0.5, timeout=60))


rpc("anvil_impersonateAccount", job["user"])
given_back = asyncio.run(refund())
json.dump({**life(), "refund": given_back}, sys.stdout)
