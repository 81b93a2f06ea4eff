/**
 * The tour with a real service. It verifies its totals, can be repeated, and deletes its loops,
 * agents and actions.
 */
import { existsSync } from 'node:fs'
import t from 'tap'
import { runTour } from '../../../client/tour/tour.ts'
import { service } from '../../support/service.ts'
import { listOf } from '../support/given.ts'

const s = await service({
  BATON_ROLES: 'gateway,shards,views,executor,hosts',
  // Permits workers without isolation, because some machines have neither bubblewrap nor root.
  BATON_UNSAFE_LOCAL: 'on',
})
t.teardown(() => s.stop())
const tree = { 'a.txt': 'one\ntwo\n', 'b.txt': 'three\n' }
const take = async (folder: string, more: object = {}) => {
  let said = ''
  const right = await runTour({
    url: [s.url],
    key: s.key,
    project: 'default',
    folder,
    parts: 2,
    out: { write: (text) => (said += text) },
    ...more,
  })
  return { right, said, repository: /commit to (\S+)\.$/m.exec(said)?.[1] ?? '' }
}
const loops = async () => listOf(await s.ok('loop.list', { limit: 100 })).map(({ name }) => name)

t.test(
  'all parts of the tour succeed repeatedly and leave no records or files',
  { timeout: 180_000 },
  async (t) => {
    const folder = t.testdir(tree)
    const taken = await Promise.all([take(folder), take(folder)])
    for (const { right, said, repository } of taken) {
      t.ok(right, right ? 'right' : said)
      t.match(said, /2 files, 3 lines/)
      t.match(said, /ok {2}wc -l and sha256sum report the same values/)
      t.match(
        said,
        /ok {2}2 commits started 2 runs, all were reviewed, and their total of 38 lines equals that of wc -l/,
      )
      t.match(said, /ok {2}the schedule fired/)
      t.match(
        said,
        /ok {2}\d+ timelines with \d+ events were followed without a gap or a duplicate\n/,
      )
      t.match(said, /asked +Of the files here that end with \.txt, which/)
      t.match(
        said,
        /ok {2}the answer and the recorded text contain a\.txt and its 2 lines, as counted by wc -l/,
      )
      t.match(
        said,
        new RegExp(
          'ok {2}a worker executed the tools, and those that change something only after approval ' +
            'by a person: tour\\.find\\.\\w+ 1, tour\\.lines\\.\\w+ 1, tour\\.note\\.\\w+ 1',
        ),
      )
      t.match(
        said,
        new RegExp(
          'ok {2}a transcript of 8 messages was followed without a gap or a duplicate, ' +
            'and equals the stored transcript\\n.*chat#session=ses_\\w+\\n',
        ),
      )
      t.match(said, /run run_\w+ has published tour\/\w+\.md as art_\w+\n {2}2 rows refer to it/)
      t.match(said, /ok {2}the report, as downloaded, states the same as its 2 rows/)
      t.match(
        said,
        /ok {2}the answer contains a\.txt, its 2 lines, as counted by wc -l, and the link to the report/,
      )
      t.match(said, /ok {2}the branch fix of tour\/sums has the corrected file/)
      t.match(
        said,
        /ok {2}tour\/terms is read-only for the workspace: the push was refused with 403/,
      )
      t.match(said, /ok {2}the artifact tour\/\w+\.diff is the diff of both branches/)
      t.match(repository, /baton-tour-/)
      t.notOk(existsSync(repository), 'the repository is deleted')
    }
    t.strictSame(await loops(), [], 'the loops are deleted')
    t.strictSame(listOf(await s.ok('agent.list')), [], 'the agents are deleted')
    t.strictSame(listOf(await s.ok('action.list')), [], 'the actions are deleted')
    t.strictSame(listOf(await s.ok('table.list')), [], 'the tables are deleted')
    t.strictSame(listOf(await s.ok('artifact.list')), [], 'the reports are deleted')
    t.strictSame(listOf(await s.ok('repository_host.list')), [], 'the hosts are deleted')
  },
)

t.test(
  'a stopped tour cleans up and reports that it was stopped',
  { timeout: 60_000 },
  async (t) => {
    const stop = new AbortController()
    let said = ''
    const write = (text: string) => {
      said += text
      if (text.includes('git commit')) stop.abort()
    }
    t.notOk((await take(t.testdir(tree), { signal: stop.signal, out: { write } })).right)
    t.match(said, /The tour failed: .*the tour was stopped/)
    t.notOk(existsSync(/commit to (\S+)\.$/m.exec(said)?.[1] ?? ''))
    t.strictSame(await loops(), [])
  },
)

t.test('the tour can be limited to its first part', { timeout: 60_000 }, async (t) => {
  const { right, said } = await take(t.testdir(tree), {
    loop: false,
    agent: false,
    tables: false,
    coding: false,
  })
  t.ok(right, right ? 'right' : said)
  t.notMatch(said, /loop_|agt_/)
})
