/**
 * Decides when and in which process each test file runs, to keep every processor busy until the
 * end. Files that mostly wait run at the same time as files that mostly compute, and the longest
 * files start first. A process runs many files, because it takes 1 s of processor time to load a
 * service, and because code that V8 has optimized stays optimized.
 */

/**
 * Tests that use several processes or deadlines. They mostly wait: their processes take half of one
 * processor (2026-11-26). At most `MAX_WAITING` of them run at the same time.
 */
const WAITING = new RegExp(
  [
    '^test.scenarios.\\w+.(\\w+-kill|answer-page|chat-page|backup|kill|two-gateways|upgrade)\\.test\\b',
    '^test.scenarios.workers.(claims|leases)\\.test\\b',
    '^test.scenarios.cluster.nats-(authentication|permissions-cluster)\\.test\\b',
  ].join('|'),
)
/** Maximum number of concurrent test files that mostly wait. */
const MAX_WAITING = 2
/**
 * Tests that collect garbage often. They start first, because the objects that earlier files leave
 * in the process slow down every collection: these two would take 42 s instead of 22 s
 * (2026-11-27).
 */
const COLLECTING = /^test.nodes.(executor.silent-provider|nats.transfers)\b/
/** Tests that start no process of the program, except those of `test/client` and `test/nodes`. */
const NO_PROGRAM = /^test.(actors|console|docs|gateway|host|protocol|checks|simulation)\b/
/** Tests that measure time or memory of a service: nothing else runs at the same time. */
const ALONE = /^test.hostile.(pressure|transport)\b/
/**
 * Seconds that the longest files take. Only their proportions matter. A file that takes longer than
 * its value in this table starts too late, so it prolongs the run. The keys omit `test/` and
 * `.test.ts`.
 * @public
 */
export const SECONDS = {
  'actors/runs/model': 6,
  'actors/sessions/bounds': 7,
  'actors/sessions/size': 13,
  checks: 55,
  'client/cli/blueprints/hostile': 5,
  'client/cli/blueprints/write': 9,
  'client/tour/git-server': 12,
  contributing: 22,
  'gateway/blueprints/apply': 8,
  'gateway/blueprints/apply.model': 8,
  'gateway/files/streaming/transfer': 6,
  'hostile/corpus/corpus': 38,
  'hostile/foreign': 17,
  'hostile/frames': 8,
  'hostile/roles': 32,
  'hostile/rows': 38,
  'nodes/executor/documents/hostile': 13,
  'nodes/executor/silent-provider': 10,
  'nodes/hosts/hosts.model': 24,
  'nodes/hosts/local/escape': 12,
  'nodes/hosts/local/local': 17,
  'nodes/hosts/local/process': 9,
  'nodes/nats/objects': 5,
  'nodes/nats/transfers': 14,
  'nodes/storage/storage': 7,
  'nodes/storage/verify': 10,
  'retired-words': 5,
  'scenarios/access/access': 7,
  'scenarios/access/isolation': 5,
  'scenarios/actions/actions-kill': 22,
  'scenarios/agents/managed': 12,
  'scenarios/artifacts/artifacts-kill': 38,
  'scenarios/artifacts/conversion-kill': 27,
  'scenarios/blueprints/blueprints-kill': 74,
  'scenarios/blueprints/command-line': 8,
  'scenarios/cluster/nats-authentication': 24,
  'scenarios/cluster/nats-permissions': 24,
  'scenarios/cluster/nats-permissions-cluster': 64,
  'scenarios/cluster/node-id-processes': 7,
  'scenarios/cluster/restart': 6,
  'scenarios/cluster/two-gateways': 14,
  'scenarios/cluster/upgrade': 15,
  'scenarios/console/access': 20,
  'scenarios/console/actions': 20,
  'scenarios/console/agents': 28,
  'scenarios/console/channels': 26,
  'scenarios/console/data': 28,
  'scenarios/console/environments': 16,
  'scenarios/console/frame': 20,
  'scenarios/console/gateway-kill': 30,
  'scenarios/console/hostile/hostile': 80,
  'scenarios/console/inbox': 16,
  'scenarios/console/operate': 24,
  'scenarios/console/pages': 65,
  'scenarios/console/people/first-hour': 50,
  'scenarios/console/people/reload': 14,
  'scenarios/console/people/two-people': 25,
  'scenarios/console/runs': 24,
  'scenarios/console/sessions': 18,
  'scenarios/console/workflows': 24,
  'scenarios/environments/docker': 11,
  'scenarios/environments/environments-kill': 33,
  'scenarios/environments/http-provider': 14,
  'scenarios/environments/shell': 13,
  'scenarios/environments/terminal': 6,
  'scenarios/environments/workers': 6,
  'scenarios/events/events-kill': 15,
  'scenarios/events/slow-readers': 13,
  'scenarios/events/streams': 6,
  'scenarios/first-use/docs-commands': 14,
  'scenarios/first-use/first-hour': 20,
  'scenarios/first-use/tour': 17,
  'scenarios/interactions/interactions-kill': 6,
  'scenarios/loops/loops-kill': 45,
  'scenarios/loops/loops-triggers': 11,
  'scenarios/operations/backup': 8,
  'scenarios/operations/corked': 6,
  'scenarios/operations/restore': 6,
  'scenarios/operations/storage': 38,
  'scenarios/pages/answer-page': 10,
  'scenarios/pages/chat-page': 11,
  'scenarios/resolver/resolver-kill': 35,
  'scenarios/runs/bounds': 8,
  'scenarios/runs/kill': 37,
  'scenarios/sessions/attachments': 6,
  'scenarios/sessions/attachments-kill': 13,
  'scenarios/sessions/restart-turns': 14,
  'scenarios/sessions/transcripts-kill': 9,
  'scenarios/sessions/turns-kill': 25,
  'scenarios/tables/semantic': 17,
  'scenarios/tables/table-tools-kill': 6,
  'scenarios/tables/tables-kill': 24,
  'scenarios/webhooks/webhooks': 23,
  'scenarios/webhooks/webhooks-kill': 14,
  'scenarios/workers/claims': 16,
  'scenarios/workers/leases': 16,
  'scenarios/workers/queue-order': 6,
  'scenarios/workers/reports': 9,
  simulation: 22,
  'simulation-plants': 10,
  'views/properties': 6,
  'views/tables/tables/rows': 8,
}
/** Assumed seconds of a file that is not in the table. */
const DEFAULT_SECONDS = 0.7
/** Maximum number of files that a process runs. Its memory grows with each file. */
const MAX_FILES = 80

/**
 * @typedef {{ readonly computing: string[], readonly waiting: string[],
 *   readonly alone: string[] }} Schedule
 */
/**
 * A process that runs test files. `run` resolves when the file has ended, with false if the process
 * cannot run another file. `end` resolves when the process has ended.
 * @typedef {{ run(file: string): Promise<boolean>, end(): Promise<void> }} TestProcess
 */

/**
 * Returns the seconds that a file takes according to the table.
 * @param {string} file
 * @public
 */
export const secondsOf = (file) =>
  /** @type {Readonly<Record<string, number>>} */ (SECONDS)[
    file.replace(/^test\//, '').replace(/\.test\.ts$/, '')
  ] ?? DEFAULT_SECONDS

/** @param {readonly string[]} files */
const secondsOfAll = (files) => files.reduce((sum, file) => sum + secondsOf(file), 0)

/**
 * Divides files into those that mostly compute, those that mostly wait and those that run alone.
 * @param {readonly string[]} files paths relative to the project
 * @returns {Schedule} the longest files first, after those that collect garbage
 */
export function scheduleOf(files) {
  const collects = (/** @type {string} */ file) => Number(COLLECTING.test(file))
  const longestFirst = files.toSorted(
    (a, b) => collects(b) - collects(a) || secondsOf(b) - secondsOf(a),
  )
  return {
    computing: longestFirst.filter((file) => !WAITING.test(file) && !ALONE.test(file)),
    waiting: longestFirst.filter((file) => WAITING.test(file)),
    alone: longestFirst.filter((file) => ALONE.test(file)),
  }
}

/**
 * Returns whether a file starts no process of the program. Such a file can run while native
 * packages are compiled, if it loads none of them.
 * @param {string} file path relative to the project
 */
export const startsNoProgram = (file) => NO_PROGRAM.test(file)

/**
 * Runs the files of a schedule. Usually, at most one slot at a time runs a waiting file.
 * `MAX_WAITING` slots do so if there are more than three slots, or if the waiting files would
 * otherwise end last and leave processors idle. Each slot keeps its process as long as possible.
 * Files that must run alone run last, each in its own process.
 *
 * While files are held, one slot stays free, because what they wait for takes a processor. The
 * processes of the other slots end when the files are released: the files that collect garbage
 * start then, and need new processes.
 * @param {Schedule} schedule
 * @param {object} options
 * @param {number} options.slots number of files that run at the same time
 * @param {number} [options.together] maximum number of files per process
 * @param {() => TestProcess} options.open starts a process
 * @param {{ files: ReadonlySet<string>, until: Promise<void> }} [options.held] files that must not
 *   start until a promise resolves
 */
export async function runSchedule(schedule, { slots, together = MAX_FILES, open, held }) {
  const [computing, waiting] = [[...schedule.computing], [...schedule.waiting]]
  let isHeld = held !== undefined
  const released = held?.until.then(() => {
    isHeld = false
  })
  /** @param {string[]} files */
  const take = (files) => {
    const at = isHeld ? files.findIndex((file) => !held?.files.has(file)) : 0
    return at < 0 ? undefined : files.splice(at, 1)[0]
  }
  let waits = 0
  const mostWaiting = () =>
    slots > 3 || secondsOfAll(waiting) > secondsOfAll(computing) / (slots - 1) ? MAX_WAITING : 1
  /** @returns {{ file: string, waits: boolean } | undefined} */
  const next = () => {
    const file = waits < mostWaiting() ? take(waiting) : undefined
    if (file !== undefined) return { file, waits: true }
    const other = take(computing)
    return other === undefined ? undefined : { file: other, waits: false }
  }
  const slot = async () => {
    /** @type {TestProcess | undefined} */
    let process
    let files = 0
    for (let one = next(); one; one = next()) {
      if (one.waits) waits++
      process ??= open()
      const wasHeld = isHeld
      const usable = await process.run(one.file)
      if (one.waits) waits--
      files++
      if (usable && files < together && wasHeld === isHeld) continue
      await process.end()
      process = undefined
      files = 0
    }
    await process?.end()
  }
  await Promise.all(
    Array.from({ length: slots }, async (_, index) => {
      if (!isHeld || index > 0) await slot()
      if (released === undefined) return
      await released
      await slot()
    }),
  )
  for (const file of schedule.alone) {
    const process = open()
    await process.run(file)
    await process.end()
  }
}
