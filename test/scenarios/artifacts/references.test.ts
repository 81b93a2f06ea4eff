/**
 * References to artifacts in the results of jobs: they are stored as reported, are shown to models
 * and readers, and grant no access to an artifact.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { listOf, until } from '../support/given.ts'
import { as, editor, person } from '../support/people.ts'
import { start } from '../support/sockets.ts'
import { artifactClient, type Open, sha256 } from './client.ts'

t.setTimeout(60_000)
const s = await service()
t.teardown(() => s.stop())
const { put, content } = artifactClient(s.url, s.key)
const reference = ({ id, name, mime_type, size_bytes, sha256: digest }: Open) => ({
  type: 'artifact',
  id,
  name,
  mime: mime_type,
  size: size_bytes,
  sha256: digest,
})
const under = (job: Open) => ({ 'x-service-lease-token': String(job['lease_token']) })

t.test('the result of a run keeps its references, whatever they refer to', async (t) => {
  await s.ok('project.create', { name: 'Other', handle: 'other' })
  const there = await person(s, 'there', 'role_admin', 'other')
  const foreign = await put('foreign', Buffer.from('x'), { project: 'other', ...as(there) })
  t.equal(foreign.status, 201)
  const worker = await s.worker({ action_names: ['make'] })
  const run = await start(s, 'make')
  const job = await worker.job()
  const own = await put('out/report.txt', Buffer.from('hello'), { headers: under(job) })
  const unknown = { ...own.body, id: `${String(own.body['id']).slice(0, -6)}AAAA00` }
  const result = {
    report: reference(own.body),
    more: [reference(unknown), { deep: reference(foreign.body) }],
  }
  await worker.report(job, { status: 'completed', result })
  const ended = await until(
    () => s.ok('run.get', { id: run['id'] }),
    ({ status }) => status === 'completed',
  )
  t.match(JSON.stringify(ended['output'] ?? ended), String(own.body['id']))
  const events = listOf(await s.ok('run.events', { id: run['id'], limit: 200 }))
  const completed = events.find(({ event_type }) => event_type === 'action.completed')
  t.match(completed, { payload: { result } }, 'nothing of the result is lost or changed')
  t.match(
    listOf(await s.ok('artifact.list', { run_id: run['id'] })).map(({ id }) => id),
    [own.body['id']],
  )
  const viewer = await person(s, 'viewer', 'role_viewer')
  t.equal((await content(own.body['id'], as(viewer))).bytes.toString(), 'hello')
  for (const id of [unknown.id, foreign.body['id']]) {
    t.equal((await content(id, as(viewer))).status, 404)
    t.equal((await content(id)).status, 404, 'the same for an administrator of the project')
  }
  worker.close()
})

t.test('a model receives the reference in the result of its tool', async (t) => {
  const worker = await s.worker({ action_names: ['file.make'] })
  await s.ok('action.create', { name: 'file.make', endpoint_kind: 'worker' })
  const toolkit = await s.ok('toolkit.create', {
    name: 'files',
    actions: [{ selector_type: 'wildcard', selector: 'file.*' }],
  })
  const agent = await s.ok('agent.create', {
    name: 'maker',
    tool_presentation: 'flat',
    system_prompt: `script:
  - when: {after: file.make}
    say: "It is {{result.file.id}}, {{result.file.name}}"
  - call: {file.make: {}}
`,
  })
  await s.ok('agent.assign_toolkits', { id: agent['id'], toolkit_ids: [toolkit['id']] })
  const [ann, bob] = [await editor(s, 'ann'), await editor(s, 'bob')]
  const { session } = (await ann.ok('agent.invoke', {
    agent_ref: { id: agent['id'] },
    session: { session_key: 'files', visibility: 'private' },
    input: { content: [{ type: 'text', text: 'make it' }] },
  })) as unknown as { session: { id: string } }
  const job = await worker.job()
  const made = await put('may.txt', Buffer.from('hello'), { headers: under(job) })
  t.equal(made.body['sha256'], sha256(Buffer.from('hello')))
  const file = reference(made.body)
  await worker.report(job, { status: 'completed', result: { file } })
  const messages = await until(
    async () => listOf(await ann.ok('session.messages', { session_id: session.id })),
    (all) => all.length >= 4,
  )
  const blocks = messages.flatMap(({ content: all }) => all as unknown as Open[])
  const shown = blocks.find(({ type }) => type === 'tool_result')
  t.same(JSON.parse(String(shown?.['content'])), { file })
  t.match(blocks.at(-1), { text: `It is ${String(file.id)}, may.txt` })
  t.equal((await content(file.id, as(ann))).bytes.toString(), 'hello')
  t.equal((await content(file.id, as(bob))).status, 404, 'bob may not read the session')
  worker.close()
})
