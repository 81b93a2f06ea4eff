/** The console's API client, router and permissions, as far as they need no browser. */
import t from 'tap'
import { cliOf, commandOf, curlOf, shellQuote, typescriptOf } from '../../console/api/call-text.ts'
import { call, callEarly, requestOf, setUnknownOutcomeHandler } from '../../console/api/client.ts'
import { hasOtherFaults } from '../../console/api/refusal.ts'
import { saverOf } from '../../console/api/save.ts'
import { runText } from '../../console/pages/runs/run/text.ts'
import { tablesText } from '../../console/pages/tables/text.ts'
import { fillPath, matchPath } from '../../console/router/match.ts'
import { draftName, removeDrafts, removeOldDrafts } from '../../console/shell/drafts.ts'
import { covers } from '../../console/shell/permissions.ts'
import { rankOf } from '../../console/shell/rank.ts'
import { formatBytes, formatDuration, formatRelative } from '../../console/text/format.ts'
import { embeddedRoutes } from '../../nodes/console.ts'
import { readSources } from '../support/structure/sources.ts'

Object.assign(globalThis, { BATON_ROUTES: embeddedRoutes() })

t.test('addresses match patterns part by part', async (t) => {
  const pattern = '/p/:project/runs/:id'
  t.strictSame(matchPath(pattern, '/p/a%2Fb/runs/run_1'), { project: 'a/b', id: 'run_1' })
  t.strictSame(matchPath(pattern, '/p/a/runs/run_1/'), { project: 'a', id: 'run_1' })
  for (const other of ['/p/a/runs', '/p/a/runs/', '/p//runs/x', '/q/a/runs/x', '/p/%ff/runs/x'])
    t.equal(matchPath(pattern, other), undefined, other)
  t.strictSame(matchPath('/', '/'), {})
  t.equal(fillPath(pattern, { project: 'a/b', id: 'x' }), '/p/a%2Fb/runs/x')
})

t.test('a request has its members in path, query and body', async (t) => {
  t.strictSame(
    requestOf('run.list', { project: 'a b', status: ['running', 'failed'], queue: '' }),
    {
      method: 'GET',
      path: '/v1/projects/a%20b/runs?include=initiated_by%2Cwaiting_on&status=running%2Cfailed'.replace(
        /include=[^&]*/,
        `include=${encodeURIComponent((BATON_ROUTES['run.list']?.include ?? []).join(','))}`,
      ),
    },
  )
  const { method, path, body } = requestOf('run.cancel', {
    project: 'p',
    id: 'run_1',
    reason: 'late',
  })
  t.strictSame(
    [method, path.split('?')[0], body],
    ['POST', '/v1/projects/p/runs/run_1/cancellations', { reason: 'late' }],
  )
  t.throws(() => requestOf('run.get', { project: 'p' }), { message: /needs id/ })
  t.throws(() => requestOf('toString', {}), { message: /no operation/ })
})

t.test('permissions cover others by name and by wildcard', async (t) => {
  t.ok(covers('service.project.view', 'project.view'))
  t.ok(covers('service.*', 'project.view'))
  t.ok(covers('*', 'project.view'))
  t.ok(covers('actions.execute.*', 'actions.execute.a.b'))
  t.notOk(covers('service.project.view', 'project.edit'))
  t.notOk(covers('actions.execute.a', 'actions.execute.b'))
})

t.test('drafts belong to a person and are removed with their names', async (t) => {
  const storage = {}
  t.teardown(() => Reflect.deleteProperty(globalThis, 'localStorage'))
  const removeItem = { value: (name: string) => Reflect.deleteProperty(storage, name) }
  Object.defineProperty(storage, 'removeItem', removeItem)
  Object.defineProperty(globalThis, 'localStorage', { value: storage, configurable: true })
  const own = draftName('user_1', 'channel.a')
  const foreign = draftName('user_11', 'channel.a')
  Object.assign(storage, { [own]: 'mine', [foreign]: 'theirs', 'console.draft.channel.a': 'old' })
  removeOldDrafts()
  t.strictSame(storage, { [own]: 'mine', [foreign]: 'theirs' })
  removeDrafts('user_1')
  t.strictSame(storage, { [foreign]: 'theirs' }, 'no draft of a person with a longer id')
})

t.test('no element is cached', (t) => {
  // Cached elements leak memory; see `Pure` in console/design/pure.ts.
  for (const [path, text] of readSources(['console']))
    for (const { index } of text.matchAll(/\buseMemo\(/g)) {
      let [depth, end] = [1, index + 'useMemo('.length]
      for (; depth > 0 && end < text.length; end++)
        depth += text[end] === '(' ? 1 : text[end] === ')' ? -1 : 0
      t.notMatch(text.slice(index, end), /<\/|\/>/, path)
    }
  t.end()
})

t.test('numbers are readable', async (t) => {
  t.equal(formatBytes(1023), '1,023 B')
  t.equal(formatBytes(1536), '1.5 KiB')
  t.equal(formatDuration(850), '850 ms')
  t.equal(formatDuration(12_340), '12.3 s')
  t.equal(formatDuration(200_000), '3 min 20 s')
  t.equal(formatDuration(187_200_000), '2 d 4 h')
  t.equal(formatRelative(0, 180_000), '3 minutes ago')
})

t.test('a call is shown for the shell and for programs', async (t) => {
  t.equal(shellQuote("it's"), `'it'\\''s'`)
  const input = { project: 'p', id: 'run_1', reason: `$(rm) 'x'` }
  t.match(curlOf('run.cancel', input, 'https://b.example'), /^curl -X POST https:\/\/b\.example\//)
  t.match(curlOf('run.cancel', input, 'https://b.example'), `'\\''x'\\''`)
  t.equal(cliOf('project.list', {}), 'npm run baton -- call project.list')
  t.equal(commandOf('run start', 'default'), 'npm run baton -- run start')
  t.match(typescriptOf('run.cancel', input, 'https://b.example'), /baton\.run\.cancel\(\{/)
  t.match(typescriptOf('run.cancel', input, 'https://b.example'), 'BATON_KEY ?? \'\', project: "p"')
})

t.test('both numbers of a progress have separators', async (t) => {
  t.equal(tablesText.imported(1000, 2000), '1,000 of 2,000 rows imported')
  t.equal(runText.stepCounts(1000, 2000), '1,000 of 2,000 done')
})

t.test('the palette ranks beginnings before words, parts and letters', async (t) => {
  t.strictSame(
    ['Second', 'My second', 'Subsecond', 'Secrets of one', 'Secrets'].map((label) =>
      rankOf('seco', label, 'Operate'),
    ),
    [0, 1, 2, 3, 4],
  )
  t.equal(rankOf('seco', 'Runs', 'Work'), undefined)
  t.equal(rankOf('', 'Runs', 'Work'), 0, 'without a text, everything fits')
})

t.test('an early call gives its answer to the first equal call', async (t) => {
  const asked: string[] = []
  const { fetch } = globalThis
  t.teardown(() => {
    globalThis.fetch = fetch
  })
  globalThis.fetch = (async (path: string) => {
    asked.push(path)
    return path.includes('missing')
      ? Response.json({ error: { code: 'not_found', message: 'no' } }, { status: 404 })
      : Response.json({ id: asked.length })
  }) as typeof globalThis.fetch
  callEarly('run.get', { project: 'p', id: 'a' })
  t.match(await call('run.get', { project: 'p', id: 'b' }), { id: 2 }, 'another call is sent')
  t.match(await call('run.get', { project: 'p', id: 'a' }), { id: 1 })
  t.match(await call('run.get', { project: 'p', id: 'a' }), { id: 3 }, 'the answer is used once')
  callEarly('run.get', { project: 'p', id: 'missing' })
  await t.rejects(call('run.get', { project: 'p', id: 'missing' }), { code: 'not_found' })
  t.equal(asked.length, 4)
  callEarly('run.get', { project: 'p', id: 'missing' })
  await new Promise(setImmediate)
  await t.rejects(call('run.get', { project: 'p', id: 'missing' }), { code: 'not_found' })
  t.equal(asked.length, 6, 'a failure is not kept for the page')
})

t.test('a change without an answer is repeated safely, or its outcome is unknown', async (t) => {
  const { fetch, setTimeout } = globalThis
  t.teardown(() => Object.assign(globalThis, { fetch, setTimeout }))
  const sent: { readonly method: string; readonly key: string | undefined }[] = []
  let answers: (number | 'lost')[] = []
  let reloads = 0
  setUnknownOutcomeHandler(() => reloads++)
  Object.assign(globalThis, {
    // Pauses end immediately.
    setTimeout: (run: () => void) => queueMicrotask(run),
    fetch: async (_: string, { method, headers }: { method: string; headers: object }) => {
      sent.push({ method, key: (headers as Record<string, string>)['idempotency-key'] })
      const status = answers.shift() ?? 200
      if (status === 'lost') throw new TypeError('network')
      const code = status === 503 ? 'service_unavailable' : 'conflict'
      return new Response(
        status === 204 ? null : JSON.stringify(status < 400 ? {} : { error: { code } }),
        { status },
      )
    },
  })
  const tried = async (given: (number | 'lost')[], run: () => Promise<unknown>) => {
    answers = given
    sent.length = 0
    return run().then(
      () => 'done',
      (error: { readonly code: string }) => error.code,
    )
  }
  const create = () => call('workflow.create', { project: 'p', name: 'a' } as never)
  t.equal(await tried([503, 'lost', 200], create), 'done')
  t.equal(new Set(sent.map(({ key }) => key)).size, 1, 'all attempts have one key')
  const [first] = sent
  t.equal(await tried([503, 503, 503, 503], create), 'service_unavailable')
  const [lost] = sent
  t.not(lost?.key, first?.key, 'another creation has another key')
  t.equal(await tried([200], create), 'done')
  t.equal(sent[0]?.key, lost?.key, 'trying again is a repeat')
  t.equal(await tried([505, 500, 200], create), 'done')
  t.equal(await tried([200], create), 'done')
  t.not(sent[0]?.key, lost?.key, 'after an answer, it is a new request')

  const change = () => call('workflow.update', { project: 'p', id: 'w', name: 'b' } as never)
  t.equal(await tried([503], change), 'outcome_unknown')
  t.equal(sent.length, 1, 'a change without a key is not repeated')
  t.equal(await tried([429, 200], change), 'done', 'a limit excludes an effect')
  t.equal(await tried([505, 200], change), 'done', 'the request line arrived in parts')
  t.equal(await tried([500], change), 'conflict')
  t.equal(await tried([409], change), 'conflict')
  const remove = () => call('workflow.delete', { project: 'p', id: 'w' })
  t.equal(await tried(['lost', 404], remove), 'done', 'the lost attempt has deleted it')
  t.equal(await tried([404], remove), 'conflict')
  t.equal(await tried(['lost', 'lost', 'lost', 'lost'], remove), 'outcome_unknown')
  t.equal(reloads, 2, 'what is shown is loaded again')
})

t.test('a form never replaces the change of somebody else unnoticed', async (t) => {
  const { fetch } = globalThis
  t.teardown(() => Object.assign(globalThis, { fetch }))
  let stored: Record<string, unknown> = { id: 'a', name: 'old', updated_at: '1' }
  /** Changes by other people, each made between a read and the update that follows it. */
  let others: Record<string, unknown>[] = []
  const tag = () => JSON.stringify(JSON.stringify(stored).replaceAll('"', "'"))
  const sent: string[] = []
  Object.assign(globalThis, {
    fetch: async (
      _: string,
      { method, headers, body }: { method: string; headers: Record<string, string>; body: string },
    ) => {
      sent.push(method)
      if (method === 'GET') {
        const answer = Response.json(stored, { headers: { etag: tag() } })
        stored = { ...stored, ...others.shift() }
        return answer
      }
      if (headers['if-match'] !== tag())
        return Response.json({ error: { code: 'precondition_failed' } }, { status: 412 })
      stored = { ...stored, ...(JSON.parse(body) as object), updated_at: '2' }
      return Response.json(stored)
    },
  })
  const of = { project: 'p', id: 'a' }
  const save = saverOf(stored)
  others = [{ description: 'theirs' }]
  await save('agent.update', { ...of, name: 'mine' })
  t.match(stored, { name: 'mine', description: 'theirs' }, 'other fields are kept')
  t.strictSame(sent.splice(0), ['GET', 'PATCH', 'GET', 'PATCH'], 'the change came in between')
  others = [{}, { name: 'theirs' }]
  await save('agent.update', { ...of, name: 'mine 2' })
  others = [{ name: 'theirs' }]
  await t.rejects(save('agent.update', { ...of, name: 'mine 3' }), {
    code: 'precondition_failed',
    message: /name/,
  })
  t.match(stored, { name: 'theirs' })
  await save('agent.update', { ...of, name: 'mine 3' })
  t.match(stored, { name: 'mine 3' }, 'after the notice, the person may replace it')
  const kit = saverOf({ name: 'mine 3', description: 'theirs' })
  stored = { ...stored, description: 'new' }
  const body = { ...of, name: 'mine 3', actions: [] }
  await t.rejects(kit('toolkit.replace', body), { message: /description/ }, 'a PUT removes fields')
})

t.test('a form shows the whole refusal unless each fault is beside a field', async (t) => {
  const refusal = (...names: string[]) => ({
    fields: names.map((field) => ({ field, message: 'is wrong' })),
  })
  const shown = ['name', 'tags']
  t.ok(hasOtherFaults(refusal(), shown), 'a refusal without faults')
  t.notOk(hasOtherFaults(refusal('name', 'tags[2]', 'tags.a'), shown))
  t.ok(hasOtherFaults(refusal('name', 'names'), shown), 'a field that the form does not show')
  t.ok(hasOtherFaults(refusal('model.name'), shown))
})
