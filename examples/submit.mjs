#!/usr/bin/env node
// Hands a call in through the broker, by name and signed. Node.js 18 or later, no package.
//
//   COUNTERFOIL_BROKER_URL=redis://127.0.0.1:6379/0 COUNTERFOIL_KEY_ID=billing-1 BILLING_KEY=… \
//     node examples/submit.mjs TARGET TOOL '{"month": "2026-10"}' CALL_NODE
//
// The secret is in the variable that COUNTERFOIL_KEY_ENV names (BILLING_KEY without it). Exits 0 when the broker has the
// message: there is an operation as soon as a worker has taken it (docs/producers.md).

import { createHmac, randomUUID } from "node:crypto";
import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import { fileURLToPath } from "node:url";

const TASK = "counterfoil.submit.v1"; // the task's name and its queue's
const LIST = `counterfoil:${TASK}`; // the Redis list: queues of the fleet stand under this prefix
const TIMEOUT_MS = 10_000;

/** `[body, key id, signature]`. The body is signed as the text that it is sent as. */
export function sign(call, keyId, secret) {
  const body = JSON.stringify({ v: 1, ...call, sent_at: new Date().toISOString() });
  const signature = createHmac("sha256", secret).update(`${TASK}\n${keyId}\n${body}`).digest("hex");
  return [body, keyId, signature];
}

/** A Celery message (protocol 2) as the Redis transport stores it. */
export function envelope(args) {
  const id = randomUUID();
  return JSON.stringify({
    body: Buffer.from(JSON.stringify([args, {}, {}])).toString("base64"),
    "content-type": "application/json",
    "content-encoding": "utf-8",
    headers: { lang: "js", task: TASK, id, root_id: id, parent_id: null, group: null },
    properties: {
      correlation_id: id,
      reply_to: "",
      delivery_mode: 2,
      delivery_info: { exchange: "counterfoil", routing_key: TASK },
      delivery_tag: randomUUID(),
      body_encoding: "base64",
      priority: 0,
    },
  });
}

/** LPUSH onto a list of the broker at `redis[s]://[user:password@]host:port/db`. Rejects with what Redis answered. */
export function push(brokerUrl, list, value) {
  const url = new URL(brokerUrl);
  const commands = [["LPUSH", list, value]];
  if (url.pathname.length > 1) commands.unshift(["SELECT", url.pathname.slice(1)]);
  if (url.password) {
    const user = url.username ? [decodeURIComponent(url.username)] : [];
    commands.unshift(["AUTH", ...user, decodeURIComponent(url.password)]);
  }
  const request = commands.map((words) => {
    const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
    return `*${words.length}\r\n${parts.join("")}`;
  });
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1"); // an IPv6 address without its brackets
  const address = { host, port: Number(url.port || 6379) };
  return new Promise((resolve, reject) => {
    const secure = url.protocol === "rediss:";
    const socket = secure ? connectTls({ ...address, servername: host }) : connectTcp(address);
    let answers = "";
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error("the broker did not answer in time")));
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("the broker closed the connection before it answered")));
    socket.on("data", (data) => {
      answers += data.toString();
      const lines = answers.split("\r\n").slice(0, -1); // each answer here is one line
      const refusal = lines.find((line) => line.startsWith("-"));
      if (refusal) socket.destroy(new Error(`the broker refused: ${refusal.slice(1)}`));
      else if (lines.length === commands.length) {
        resolve();
        socket.end();
      }
    });
    socket.write(request.join(""));
  });
}

async function main([target, tool, argumentsText, callNodeId, ...more]) {
  const { COUNTERFOIL_BROKER_URL: brokerUrl, COUNTERFOIL_KEY_ID: keyId } = process.env;
  const secret = process.env[process.env.COUNTERFOIL_KEY_ENV ?? "BILLING_KEY"];
  if (!callNodeId || more.length || !brokerUrl || !keyId || !secret) {
    console.error("usage: COUNTERFOIL_BROKER_URL=… COUNTERFOIL_KEY_ID=… BILLING_KEY=… node submit.mjs TARGET TOOL JSON CALL_NODE");
    return 2;
  }
  const call = { call_node_id: callNodeId, target, tool, arguments: JSON.parse(argumentsText) };
  await push(brokerUrl, LIST, envelope(sign(call, keyId, secret.trim())));
  console.error(`handed to the broker: ${callNodeId}`);
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    process.exitCode = await main(process.argv.slice(2));
  } catch (error) {
    console.error(`not handed in: ${error.message}`);
    process.exitCode = 1;
  }
}
