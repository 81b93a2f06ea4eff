/**
 * The parts of the tour that need no server, such as listing, splitting and measuring files, and
 * verifying the events of runs.
 */
import { createHmac } from 'node:crypto'
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { client } from '../../client/client.ts'
import { tourActions } from '../../client/tour/actions.ts'
import { agentActions, commonEnding, largestOf, toolsOf } from '../../client/tour/agent.ts'
import { tourOfCommits } from '../../client/tour/commits.ts'
import { byPath, listFiles, split } from '../../client/tour/files.ts'
import { loopActions, loopOf } from '../../client/tour/loop.ts'
import { combineMeasurements, digestOf, measure } from '../../client/tour/measure.ts'
import { reportActions, reportSpec, reportTable, searchable } from '../../client/tour/reports.ts'
import { git, hasGit, repository } from '../../client/tour/repository.ts'
import { show } from '../../client/tour/show.ts'
import { Lines } from '../../client/tour/spoken.ts'
import { differences, fromTools } from '../../client/tour/verify.ts'
import { unequal } from '../../client/tour/watch.ts'
import { ensureWorkflow, partSpec, queueOf, tourSpec } from '../../client/tour/workflow.ts'
import { Transcript } from '../../client/transcript.ts'
import type { ActionContext } from '../../client/worker/options.ts'
import { schemaFaults } from '../../protocol/tables/definition.ts'
import { checkSpec } from '../../protocol/workflows/spec.ts'
import { jobOf, logTo, notPublished } from './worker/stand.ts'

const never = new AbortController().signal
const tree = {
  'b.txt': 'one\ntwo\n',
  'a.txt': 'no newline',
  empty: '',
  sub: { 'ö ä.txt': '\n\n\n', 'Z.bin': Buffer.from([0, 10, 255, 10]) },
  node_modules: { 'x.js': 'no' },
  '.baton': { 'root.key': 'no' },
}

t.test('lists regular files, sorted, without the files of tools', async (t) => {
  const folder = t.testdir(tree)
  symlinkSync('nowhere', join(folder, 'dangling'))
  t.strictSame(
    (await listFiles(folder)).map(({ path }) => path),
    ['a.txt', 'b.txt', 'empty', 'sub/Z.bin', 'sub/ö ä.txt'],
  )
})

t.test('a split contains every file once, and no part is empty', async (t) => {
  const files = fc.uniqueArray(
    fc.record({ path: fc.string({ minLength: 1 }), size: fc.nat(10_000) }),
    { selector: ({ path }) => path, minLength: 1, maxLength: 40 },
  )
  void fc.assert(
    fc.property(files, fc.integer({ min: 1, max: 10 }), (files, parts) => {
      const made = split(files, parts)
      return (
        made.length === Math.min(parts, files.length) &&
        made.every((part) => part.length > 0) &&
        JSON.stringify(made.flat().sort(byPath)) ===
          JSON.stringify(files.map(({ path }) => path).sort(byPath))
      )
    }),
    { numRuns: 100 },
  )
  t.strictSame(
    split(
      [
        { path: 'a', size: 9 },
        { path: 'b', size: 5 },
        { path: 'c', size: 4 },
      ],
      2,
    ),
    [['a'], ['b', 'c']],
    'about equal in size',
  )
})

t.test('measures the same as wc and sha256sum, in parts and in total', async (t) => {
  const folder = t.testdir(tree)
  const files = await listFiles(folder)
  const parts = await Promise.all(split(files, 3).map((paths) => measure(folder, paths, never)))
  const whole = combineMeasurements(parts)
  const tools = await fromTools(
    folder,
    files.map(({ path }) => path),
  )
  t.strictSame(
    [whole.files, whole.lines, whole.sums, digestOf(whole.sums)],
    [5, tools.lines, tools.sums, tools.sha256],
  )
  t.equal(whole.lines, 7)
  t.strictSame(differences(whole.sums, tools.sums), [])
  t.strictSame(differences(whole.sums, tools.sums.replace(/^[0-9a-f]/, 'x')), ['a.txt'])
})

t.test('a worker of the tour reads only files in its own folder', async (t) => {
  const folder = t.testdir(tree)
  const run = (name: string, parameters: Record<string, unknown>) =>
    Promise.resolve(
      tourActions(client({ url: 'http://x.test', key: 'k' }), folder, 'w')[name]?.(parameters, {
        signal: never,
        job: jobOf(name),
        log: logTo(),
        publish: notPublished,
      }),
    )
  t.match(await run('tour.list', { folder, parts: '2' }), { files: 5, parts: [{}, {}] })
  t.match(await run('tour.measure', { folder, files: '["b.txt"]' }), {
    files: 1,
    lines: 2,
    worker: 'w',
  })
  await t.rejects(async () => run('tour.list', { folder: '/etc', parts: '2' }), /not \/etc/)
  await t.rejects(run('tour.measure', { folder, files: '["../x"]' }), /is not in/)
})

t.test('reports events that are missed, repeated or out of order', async (t) => {
  t.equal(unequal('r', [1, 2, 5], [1, 2, 5]), undefined)
  t.match(unequal('r', [1, 5], [1, 2, 5]), { missed: [2], repeated: [], disordered: false })
  t.match(unequal('r', [1, 2, 2, 5], [1, 2, 5]), { missed: [], repeated: [2] })
  t.match(unequal('r', [2, 1], [1, 2]), { disordered: true })
  t.match(
    unequal('r', [1, 2], [1]),
    { disordered: true },
    'an event that is not on record is a fault',
  )
})

t.test('its workflows are valid, and are created, kept or changed as needed', async (t) => {
  t.strictSame([...checkSpec(tourSpec, 'spec'), ...checkSpec(partSpec, 'spec')], [])
  t.match(queueOf('/a'), /^tour-[0-9a-f]{8}$/)
  const sent: string[] = []
  let stored: Record<string, unknown> | undefined
  const fake = (async (url: string, { method = '', body }: RequestInit) => {
    sent.push(`${method} ${new URL(url).pathname}`)
    const input = JSON.parse(typeof body === 'string' ? body : '{}') as Record<string, unknown>
    if (method === 'GET')
      return stored
        ? Response.json(stored)
        : Response.json({ error: { code: 'not_found', message: 'no' } }, { status: 404 })
    stored = { latest_version: 1, id: 'wfd_1', ...stored, ...input }
    return Response.json(stored)
  }) as typeof fetch
  const at = client({
    url: 'http://x.test',
    key: 'k',
    project: 'shop',
    fetch: fake,
    pause: async () => {},
  })
  await ensureWorkflow(at, 'tour', tourSpec)
  await ensureWorkflow(at, 'tour', tourSpec)
  await ensureWorkflow(at, 'tour', partSpec)
  const P = '/v1/projects/shop/workflows'
  t.strictSame(sent, [
    `GET ${P}/tour-shop`,
    `POST ${P}`,
    `GET ${P}/tour-shop`,
    `GET ${P}/tour-shop`,
    `PATCH ${P}/wfd_1`,
  ])
})

t.test('without a terminal it writes plain lines and no progress bar', async (t) => {
  let written = ''
  const shown = show({ write: (text) => (written += text) })
  shown.parts(1, 2)
  shown.line('a line')
  shown.stop()
  t.equal(written, 'a line\n')
})

t.test('the git hook sends each commit to a trigger, signed, until it is answered', async (t) => {
  const got: { path: string; headers: Record<string, unknown>; body: string }[] = []
  const server = createServer((request, answer) => {
    let body = ''
    request
      .on('data', (bytes) => (body += bytes))
      .on('end', () => {
        got.push({ path: request.url ?? '', headers: request.headers, body })
        answer.writeHead(got.length === 1 ? 503 : 202).end('{}')
      })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  t.teardown(() => server.close())
  const key = Buffer.alloc(32, 'very secret')
  const made = await repository({
    url: [`http://127.0.0.1:${(server.address() as AddressInfo).port}`],
    handle: 'trig_1',
    secret: key.toString('base64'),
    header: 'X-Service-Signature',
  })
  const { id, said } = await made.commit('Add "two" lines', { 'a.txt': 'one\ntwo\n' })
  t.equal(said, '')
  t.equal(got.length, 2, 'sent again after a 503')
  const [, last] = got
  t.match(last, {
    path: '/v1/triggers/http/trig_1',
    headers: {
      'x-idempotency-key': id,
      'x-service-signature': `sha256=${createHmac('sha256', key)
        .update(last?.body ?? '')
        .digest('hex')}`,
    },
  })
  t.strictSame(JSON.parse(last?.body ?? ''), {
    commit: id,
    author: 'Baton tour',
    subject: 'Add "two" lines',
  })
  const actions = loopActions('x', made.folder)
  const run = (name: string, parameters: Record<string, unknown>) =>
    Promise.resolve(
      actions[name]?.(parameters, {
        signal: never,
        job: jobOf(name),
        log: logTo(),
        publish: notPublished,
      }),
    )
  t.strictSame(await run('tour.count.x', { commit: id }), { files: 1, lines: 2 })
  t.strictSame(await run('tour.total.x', {}), { commits: 1 })
  await t.rejects(run('tour.count.x', { commit: '--help' }), /is not the id of a commit/)
  t.strictSame((await git(made.folder, 'ls-files')).out, 'a.txt')
  await made.remove()
  t.notOk(existsSync(made.folder))
})

t.test('the loop of the tour is valid, and without git the tour prints instructions', async (t) => {
  const { steps = [], output = {} } = loopOf('x', 'very secret')
  t.strictSame(checkSpec({ steps, output }, 'spec'), [])
  t.ok(await hasGit())
  const { PATH } = process.env
  process.env['PATH'] = t.testdir()
  let said = ''
  const asked = (() => {
    throw new Error('the service is not asked')
  }) as unknown as typeof fetch
  const right = await tourOfCommits({
    at: client({ url: 'http://x.test', key: 'k', fetch: asked }),
    url: ['http://x.test'],
    key: 'k',
    shown: show({ write: (text) => (said += text) }),
    signal: never,
  })
  process.env['PATH'] = PATH
  t.notOk(right)
  t.match(said, /requires git, which is not on the PATH.*--no-loop/)
})

t.test('the worker of the agent finds files, counts lines, and writes answers down', async (t) => {
  const folder = t.testdir({ ...tree, notes: {} })
  const files = await listFiles(folder)
  t.equal(commonEnding(files), '.txt')
  t.equal(commonEnding([]), '')
  t.equal(largestOf(files, '.bin')?.path, 'sub/Z.bin')
  t.equal(largestOf(files, '.none'), undefined)
  const used: string[] = []
  const { find, lines, note } = toolsOf('x')
  const does = agentActions('x', folder, join(folder, 'notes'), (name) => used.push(name))
  const run = (name: string, parameters: Record<string, unknown>) =>
    Promise.resolve(
      does[name]?.(parameters, {
        signal: never,
        job: jobOf(name),
        log: logTo(),
        publish: notPublished,
      }),
    )
  t.match(await run(find, { ending: '.txt' }), { files: 3, largest: String })
  t.match(await run(lines, { path: 'b.txt' }), { path: 'b.txt', lines: 2 })
  await t.rejects(run(lines, { path: '../x' }), /is not in/)
  await run(note, { text: 'b.txt has 2' })
  t.equal(readFileSync(join(folder, 'notes', 'answer.txt'), 'utf8'), 'b.txt has 2\n')
  t.strictSame(used, [find, lines, lines, note])
})

t.test('the fourth part publishes a report and stores its files as rows', async (t) => {
  const { steps = [], output = {} } = reportSpec('x', 'service')
  t.strictSame(checkSpec({ steps, output }, 'spec'), [])
  t.strictSame(schemaFaults(reportTable('x').schema), [])
  const folder = t.testdir(tree)
  let published = ''
  const publish: ActionContext['publish'] = async (file, options) => {
    published = Buffer.from(file as Uint8Array).toString()
    return {
      type: 'artifact',
      id: 'art_1',
      name: options?.name ?? '',
      mime: options?.mime ?? '',
      size: published.length,
      sha256: '',
    }
  }
  const given = { signal: never, job: jobOf('x'), log: logTo(), publish }
  const measured = await reportActions('x', folder)['tour.report.x']?.({}, given)
  t.match(measured, {
    report: { id: 'art_1', name: 'tour/x.md', mime: 'text/markdown' },
    files: { length: 5 },
  })
  t.match(published, '- b.txt: 2 lines')
})
t.test('the fourth part asks about a file that a search finds first', async (t) => {
  const rowsOf = (...files: string[]) => files.map((file) => ({ data: { file } }))
  t.equal(searchable(rowsOf('lock.json', 'docs/lock.json')), 'docs/lock.json')
  t.equal(searchable(rowsOf('a.txt', 'art.txt')), 'a.txt')
  t.equal(searchable(rowsOf('a/b.ts', 'b/a.ts')), 'a/b.ts', 'any, if no search is certain')
  t.equal(searchable([]), '')
})

t.test('each event of a session is printed once, and text when it is complete', async (t) => {
  const told: string[] = []
  const lines = new Lines((line) => told.push(line.replaceAll(/ +/g, ' ')))
  const transcript = new Transcript()
  const apply = (event_type: string, more: object) => {
    transcript.apply({ event_type, ...more })
    lines.show(transcript)
  }
  const row = {
    session_id: 's',
    agent_id: 'a',
    turn_id: 't',
    role: 'assistant',
    entry_type: 'message',
    turn_index: 1,
    created_at: '',
  }
  const use = { type: 'tool_use', id: 'c', name: 'look', input: { at: 1 }, status: 'pending' }
  apply('turn.upsert', { id: 't', status: 'running', created_at: '' })
  apply('message.upsert', { ...row, id: 'm', status: 'streaming', content: [], sequence: null })
  apply('message.block', { message_id: 'm', content_index: 0, block: { type: 'text', text: '' } })
  apply('message.delta', { message_id: 'm', content_index: 0, text: 'I ' })
  apply('message.delta', { message_id: 'm', content_index: 0, text: 'look.' })
  apply('message.block', { message_id: 'm', content_index: 1, block: use })
  apply('message.block.patch', { message_id: 'm', content_index: 1, status: 'running' })
  apply('message.block.patch', { message_id: 'm', content_index: 1, status: 'ok' })
  apply('message.upsert', {
    ...row,
    id: 'm',
    status: 'final',
    content: [
      { type: 'text', text: 'I look.' },
      { ...use, status: 'ok' },
    ],
    sequence: 1,
  })
  apply('turn.upsert', { id: 't', status: 'completed', created_at: '' })
  t.strictSame(told, [
    'turn running',
    'says I look.',
    'tool look running {"at":1}',
    'tool look ok',
    'turn completed',
  ])
})
