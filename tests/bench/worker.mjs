// worker.py for Node: the same commands and replies, for a peer that is one bundled file.
import { readFileSync, readSync, writeSync } from "node:fs";
import { createRequire } from "node:module";

const clock = process.hrtime.bigint;
const context = { awsRequestId: "00000000-0000-4000-8000-000000000000", getRemainingTimeInMillis: () => 25_000 };
const require = createRequire(import.meta.url);

function* lines() {
  const chunk = Buffer.alloc(65536);
  let pending = "";
  for (let size; (size = readSync(0, chunk)) > 0; ) {
    pending += chunk.toString("utf8", 0, size);
    for (let end; (end = pending.indexOf("\n")) >= 0; pending = pending.slice(end + 1)) yield pending.slice(0, end);
  }
}

async function call(event, message) {
  const sent = { ...event, body: JSON.stringify(message) };
  const started = clock();
  const answer = await handler(sent, context);
  return [Number(clock() - started), answer];
}

const result = (answer) => (answer.statusCode === 200 ? (JSON.parse(answer.body).result ?? {}) : {});

const isRight = (found, command) =>
  found.resultType === command.result_type && !found.isError && JSON.stringify(found).includes(command.contains);

async function rounds(command) {
  const { event, message } = command;
  const [first_ns, second_ns, wrong] = [[], [], []];
  for (let number = 0; number < command.times; number++) {
    let [spent, answer] = await call(event, { ...message, id: 2 * number + 1 });
    first_ns.push(spent);
    const asked = result(answer);
    if (asked.resultType !== "input_required") {
      wrong.push(answer);
      break;
    }
    const retry = { inputResponses: command.responses, requestState: asked.requestState };
    const params = { ...message.params, ...retry };
    [spent, answer] = await call(event, { ...message, id: 2 * number + 2, params });
    second_ns.push(spent);
    if (!isRight(result(answer), command)) {
      wrong.push(answer);
      break;
    }
  }
  return { first_ns, second_ns, wrong };
}

async function repeat(command) {
  const [ns, wrong] = [[], []];
  let answer;
  for (let number = 0; number < command.times; number++) {
    let spent;
    [spent, answer] = await call(command.event, { ...command.message, id: number + 1 });
    ns.push(spent);
    if (!isRight(result(answer), command)) {
      wrong.push(answer);
      break;
    }
  }
  return { ns, wrong, bytes: Buffer.byteLength(answer.body) };
}

function memory() {
  try {
    const status = readFileSync("/proc/self/status", "ascii");
    const size = (name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)[1]);
    return { peak_kib: size("VmHWM"), rss_kib: size("VmRSS") };
  } catch {
    const peak = process.resourceUsage().maxRSS;
    return { peak_kib: peak, rss_kib: peak };
  }
}

const commands = {
  async call({ event, message }) {
    const [ns, answer] = await call(event, message);
    return { ns, answer };
  },
  rounds,
  repeat,
};

const started = clock();
const { handler } = require(process.argv[2]);
const import_ns = Number(clock() - started);
for (const line of lines()) {
  const command = JSON.parse(line);
  const reply = await commands[command.do](command);
  writeSync(1, JSON.stringify({ ...reply, ...memory(), import_ns, modules: 0 }) + "\n");
}
process.reallyExit(0);
