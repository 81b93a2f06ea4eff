/** Determines which files a run of the tests includes, and which of them are unit tests. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Returns the named test files, each once. The name of a folder includes every test file below it.
 * @param {string} root folder of the project
 * @param {readonly string[]} names files and folders, relative to the project
 * @returns {string[]} paths relative to the project
 */
export const testsOf = (root, names) => [
  ...new Set(
    names.flatMap((name) =>
      statSync(join(root, name), { throwIfNoEntry: false })?.isDirectory()
        ? readdirSync(join(root, name), { recursive: true, encoding: 'utf8' })
            .filter((file) => file.endsWith('.test.ts'))
            .sort()
            .map((file) => join(name, file))
        : [name],
    ),
  ),
]

/**
 * Files and folders of unit tests. A unit test starts no NATS server and no service, and all unit
 * tests together take less than 30 s on two cores.
 */
const UNIT = [
  'test/actors',
  'test/bench',
  'test/chaos',
  'test/client',
  'test/contract-rules.test.ts',
  'test/contract.test.ts',
  'test/docs',
  'test/gateway',
  'test/host',
  'test/language',
  'test/nodes/process/boot.test.ts',
  'test/protocol',
  'test/views',
]
/**
 * Tests of the structure of the source. They read all source files and take 10 s together. They
 * count as unit tests, but are run with the others only if they are named, as in `npm run check`.
 */
const STRUCTURE = [
  'test/architecture.test.ts',
  'test/circles.test.ts',
  'test/doors.test.ts',
  'test/registrations.test.ts',
  'test/retired-words.test.ts',
  'test/row-facts.test.ts',
]
/**
 * Files and folders below those of `UNIT` that are not unit tests, each with the reason.
 * @type {Readonly<Record<string, string>>}
 */
const NOT_UNIT = {
  'test/actors/artifacts/model.test.ts': 'its 1,500 random uploads take 3 s',
  'test/actors/channels/exchanges.test.ts': 'its random exchanges take 3 s',
  'test/actors/channels/members.test.ts': 'its largest channels take 2 s',
  'test/actors/channels/model.test.ts': 'its random channels take 2 s',
  'test/actors/environments/model.test.ts': 'its random histories take 3 s',
  'test/actors/events/keys.test.ts': 'it publishes for a simulated day, which takes 7 s',
  'test/actors/events/model.test.ts': 'its random histories take 2 s',
  'test/actors/interactions/model.test.ts': 'its random histories take 1 s',
  'test/actors/jobs/queue.model.test.ts': 'its 1,200 random queues take 1 s',
  'test/actors/jobs/waiting-jobs.test.ts': 'its long queues take 3 s',
  'test/actors/loops/firings.test.ts': 'its 1,000 waiting firings take 3 s',
  'test/actors/runs/model.test.ts': 'its 1,500 random runs take 4 s',
  'test/actors/sessions/attachments-model.test.ts': 'its random histories take 2 s',
  'test/actors/sessions/bounds.test.ts': 'its largest messages take 8 s',
  'test/actors/sessions/size.test.ts': 'its largest sessions take 8 s',
  'test/actors/tables/bounds.test.ts': 'its largest tables take 3 s',
  'test/actors/tables/model.test.ts': 'its random tables take 2 s',
  'test/client/chat/markdown.test.ts': 'its random texts take 4 s',
  'test/client/cli/blueprints/hostile.test.ts': 'its hostile files take 5 s',
  'test/client/cli/blueprints/write.test.ts': 'its random blueprints take 5 s',
  'test/client/cli/cli-server.test.ts': 'its commands use a server over sockets',
  'test/client/environment': 'real processes, git and races of files take 20 s',
  'test/client/follow-channel.test.ts': 'it starts a service',
  'test/client/tour/git-server.test.ts': 'its git processes take 3 s',
  'test/gateway/blueprints/apply.model.test.ts': 'its random histories take 8 s',
  'test/gateway/blueprints/apply.test.ts': 'a death at each step of an apply takes 6 s',
  'test/gateway/blueprints/interleaved.model.test.ts': 'its random races take 3 s',
  'test/gateway/files/office-limits.test.ts': 'its large documents take 3 s',
  'test/gateway/files/streaming/transfer.test.ts': 'its files take 3 s over sockets',
  'test/gateway/http/respond.test.ts': 'it sends 120 MB over sockets, which takes 3 s',
  'test/host/crash': 'a crash at every write takes 15 s',
  'test/host/durability/compact.test.ts': 'its random entries take 2 s',
  'test/language/engine.test.ts': 'it starts a service',
  'test/protocol/blueprints/file-schemas.test.ts': 'its schemas take 3 s',
  'test/protocol/common.test.ts': 'its 20,000 random times take 2 s',
  'test/protocol/language.test.ts': 'its random expressions take 2 s',
  'test/protocol/schedule.test.ts': 'two years minute by minute take 5 s',
  'test/views/agree.test.ts': 'its 300 random histories take 2 s',
  'test/views/properties.test.ts': 'its random histories take 3 s',
  'test/views/shapes.test.ts': 'its many shapes of records take 1 s',
  'test/views/tables/tables/rows.test.ts': 'its random tables take 6 s',
  'test/views/tables/tables/tables.test.ts': 'its large tables take 2 s',
  'test/views/tables/tables/vectors/search.test.ts': 'its random searches take 1 s',
  'test/views/waiting.test.ts': 'its thousands of runs take 2 s',
}

/**
 * @param {string} file
 * @param {string} place the file itself, or a folder above it
 */
const isBelow = (file, place) => file === place || file.startsWith(`${place}/`)

/**
 * @param {string} file path of a test file, relative to the project
 * @returns {string | undefined} why the file is not a unit test; undefined for a unit test
 */
export const notUnit = (file) =>
  [...UNIT, ...STRUCTURE].some((place) => isBelow(file, place))
    ? Object.entries(NOT_UNIT).find(([place]) => isBelow(file, place))?.[1]
    : 'its folder is not one of unit tests'

/**
 * Returns the named unit tests. The name of a folder includes the unit tests below it, except the
 * tests of the structure.
 * @param {string} root folder of the project
 * @param {readonly string[]} names files and folders, relative to the project
 * @returns {string[]}
 * @throws {Error} when a named file is not a unit test
 */
export function unitTestsOf(root, names) {
  for (const name of names) {
    const reason = name.endsWith('.test.ts') && notUnit(name)
    if (reason) throw new Error(`${name} is no unit test: ${reason}.`)
  }
  return testsOf(root, names).filter(
    (file) => notUnit(file) === undefined && (names.includes(file) || !STRUCTURE.includes(file)),
  )
}
