/**
 * Distributes test files over processes, and the processes over time, so that every processor is
 * busy until the end. Processes that mostly wait run beside those that mostly compute, and the
 * longest start first.
 */

/**
 * Tests that use several processes or deadlines. They mostly wait: their processes take half of one
 * processor (2026-11-26). At most two of them run at once, on any machine.
 */
const WAITING = new RegExp(
  [
    '^test.scenarios.\\w+.(\\w+-kill|answer-page|chat-page|backup|kill|two-gateways|upgrade)\\.test\\b',
    '^test.scenarios.workers.(claims|leases)\\.test\\b',
    '^test.scenarios.cluster.nats-(authentication|permissions-cluster)\\.test\\b',
  ].join('|'),
)
const MAX_WAITING = 2
/** Tests that measure time or memory of a service: nothing else runs at the same time. */
const ALONE = /^test.hostile.(pressure|transport)\b/
/**
 * Seconds that the longest files take. Only their proportions matter: a file that takes longer than
 * this table says starts too late, and the end of a run then has to wait for it. The names lack
 * `test/` and `.test.ts`.
 * @public
 */
export const SECONDS = {
  'actors/events/keys': 6,
  'actors/runs/model': 6,
  'actors/sessions/bounds': 7,
  'actors/sessions/size': 6,
  checks: 45,
  contributing: 22,
  'gateway/blueprints/apply': 8,
  'gateway/blueprints/apply.model': 8,
  'gateway/files/streaming/transfer': 6,
  'hostile/corpus/corpus': 22,
  'hostile/foreign': 17,
  'hostile/frames': 8,
  'hostile/roles': 19,
  'hostile/rows': 38,
  'nodes/executor/documents/hostile': 9,
  'nodes/executor/silent-provider': 5,
  'nodes/hosts/hosts.model': 12,
  'nodes/hosts/local/escape': 6,
  'nodes/hosts/local/local': 17,
  'nodes/hosts/local/process': 9,
  'nodes/nats/objects': 5,
  'nodes/nats/transfers': 19,
  'nodes/storage/storage': 7,
  'nodes/storage/verify': 10,
  'scenarios/access/access': 7,
  'scenarios/actions/actions-kill': 22,
  'scenarios/agents/managed': 12,
  'scenarios/artifacts/artifacts-kill': 20,
  'scenarios/artifacts/conversion-kill': 18,
  'scenarios/cluster/nats-authentication': 39,
  'scenarios/cluster/nats-permissions': 24,
  'scenarios/cluster/nats-permissions-cluster': 64,
  'scenarios/cluster/two-gateways': 14,
  'scenarios/cluster/upgrade': 15,
  'scenarios/environments/docker': 7,
  'scenarios/environments/environments-kill': 33,
  'scenarios/environments/http-provider': 14,
  'scenarios/environments/shell': 13,
  'scenarios/environments/terminal': 6,
  'scenarios/environments/workers': 6,
  'scenarios/events/events-kill': 15,
  'scenarios/events/slow-readers': 13,
  'scenarios/events/streams': 6,
  'scenarios/first-use/docs-commands': 6,
  'scenarios/first-use/first-hour': 12,
  'scenarios/first-use/tour': 17,
  'scenarios/interactions/interactions-kill': 6,
  'scenarios/loops/loops-kill': 45,
  'scenarios/loops/loops-triggers': 11,
  'scenarios/operations/backup': 8,
  'scenarios/operations/restore': 6,
  'scenarios/operations/storage': 23,
  'scenarios/runs/bounds': 8,
  'scenarios/runs/kill': 37,
  'scenarios/sessions/attachments-kill': 9,
  'scenarios/sessions/restart-turns': 14,
  'scenarios/sessions/transcripts-kill': 9,
  'scenarios/sessions/turns-kill': 25,
  'scenarios/tables/semantic': 17,
  'scenarios/tables/table-tools-kill': 6,
  'scenarios/tables/tables-kill': 15,
  'scenarios/webhooks/webhooks': 23,
  'scenarios/webhooks/webhooks-kill': 14,
  'scenarios/workers/claims': 16,
  'scenarios/workers/leases': 16,
  'scenarios/workers/queue-order': 6,
  'scenarios/workers/reports': 9,
  simulation: 10,
  'views/tables/tables/rows': 8,
}
/** Seconds of a file that is not in the table. */
const SHORT = 0.7
/** A file that takes more seconds than this gets its own process. */
const LONG = 15
/**
 * Maximum number of files that share a process. Unit tests use only as many processes as run at
 * once, so more of them may share one.
 */
const TOGETHER = 24

/** @typedef {{ readonly name: string, readonly files: readonly string[], readonly seconds: number }} Process */
/** @typedef {{ readonly computing: Process[], readonly waiting: Process[], readonly alone: Process[] }} Schedule */

/** @param {string} file */
const secondsOf = (file) =>
  /** @type {Readonly<Record<string, number>>} */ (SECONDS)[
    file.replace(/^test\//, '').replace(/\.test\.ts$/, '')
  ] ?? SHORT
/**
 * @param {string} file
 * @returns {Process}
 */
const single = (file) => ({ name: file, files: [file], seconds: secondsOf(file) })
/**
 * @param {readonly { readonly seconds: number }[]} some
 */
const longestFirst = (some) => some.toSorted((a, b) => b.seconds - a.seconds)

/**
 * Distributes files over shared processes that take about the same time. Each file goes to the
 * process with the least to do, and the longest are distributed first.
 * @param {readonly string[]} files
 * @param {number} most maximum number of processes
 * @returns {Process[]}
 */
function shared(files, most) {
  const parts = Math.min(most, Math.ceil(files.length / TOGETHER))
  const limit = Math.ceil(files.length / parts)
  const shares = Array.from({ length: parts }, () => ({
    files: /** @type {string[]} */ ([]),
    seconds: 0,
  }))
  for (const { name, seconds } of longestFirst(files.map(single))) {
    const open = shares.filter((share) => share.files.length < limit)
    const least = open.reduce((a, b) => (b.seconds < a.seconds ? b : a))
    least.files.push(name)
    least.seconds += seconds
  }
  return shares.map(({ files, seconds }, part) => ({
    name:
      files.length === 1 ? (files[0] ?? '') : `tests that share a process, ${part + 1} of ${parts}`,
    files,
    seconds,
  }))
}

/**
 * Distributes files over processes.
 * @param {readonly string[]} files paths relative to the project
 * @param {{ readonly most?: number, readonly separate?: boolean }} options `most`: maximum number of
 * processes in which files are shared; `separate`: every file gets its own process
 * @returns {Schedule} the longest processes first
 */
export function scheduleOf(files, { most = Number.POSITIVE_INFINITY, separate = false } = {}) {
  const waiting = files.filter((file) => WAITING.test(file))
  const alone = files.filter((file) => ALONE.test(file))
  const computing = files.filter((file) => !WAITING.test(file) && !ALONE.test(file))
  const isLong = (/** @type {string} */ file) => separate || secondsOf(file) > LONG
  return {
    computing: longestFirst([
      ...computing.filter(isLong).map(single),
      ...shared(
        computing.filter((file) => !isLong(file)),
        most,
      ),
    ]),
    waiting: longestFirst(waiting.map(single)),
    alone: alone.map(single),
  }
}

/**
 * Runs the processes of a schedule. While computing processes remain, only one or two slots are
 * used for waiting processes. Processes that must run alone run last.
 * @param {Schedule} schedule
 * @param {number} slots number of processes that run at once
 * @param {(process: Process) => Promise<void>} run
 */
export async function runSchedule(schedule, slots, run) {
  const [computing, waiting] = [[...schedule.computing], [...schedule.waiting]]
  const beside = slots > 3 ? MAX_WAITING : 1
  let waits = 0
  const slot = async () => {
    for (;;) {
      const most = computing.length > 0 ? beside : MAX_WAITING
      if (waiting.length > 0 && waits < most) {
        waits++
        await run(/** @type {Process} */ (waiting.shift()))
        waits--
        continue
      }
      const process = computing.shift()
      if (!process) return
      await run(process)
    }
  }
  await Promise.all(Array.from({ length: slots }, slot))
  for (const process of schedule.alone) await run(process)
}
