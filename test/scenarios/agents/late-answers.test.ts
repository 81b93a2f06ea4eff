/**
 * Responses that are delayed until a job ends. A caller that loses its key or its permission in the
 * meantime receives an error instead of the result.
 */
import t from 'tap'
import { type Service, service } from '../../support/service.ts'

const s: Service = await service()
t.setTimeout(120_000)
t.teardown(() => s.stop())
await s.ok('action.create', { name: 'slow.count', endpoint_kind: 'worker' })

const caller = async (name: string) => {
  const role = await s.ok('role.create', {
    name,
    permissions: ['service.project.view', 'service.runs.operate', 'actions.execute.slow.*'],
  })
  const principal = await s.ok('principal.create', { name, role_ids: [role['id']] })
  const { id, key } = await s.ok('key.create', { name, principal_id: principal['id'] })
  return { role: String(role['id']), id: String(id), key: String(key) }
}
type Caller = Awaited<ReturnType<typeof caller>>
const overHttp = (by: Caller) =>
  s
    .call('action.invoke', { action_name: 'slow.count', input: {} }, by)
    .then(({ status, body }) => ({ status, said: JSON.stringify(body) }))
const overMcp = async ({ key }: Caller) => {
  const answer = await fetch(`${s.url}/v1/projects/default/mcp`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'slow.count', arguments: {} },
    }),
  })
  return { status: answer.status, said: await answer.text() }
}
const losses: Readonly<Record<string, (by: Caller) => Promise<unknown>>> = {
  nothing: async () => undefined,
  key: ({ id }) => s.ok('key.revoke', { id }),
  right: ({ role }) => s.ok('role.update', { id: role, permissions: ['service.project.view'] }),
}

t.test('a delayed response is authorized again before it is sent', async (t) => {
  const worker = await s.worker({ action_names: ['slow.count'] })
  for (const [way, ask] of Object.entries({ http: overHttp, mcp: overMcp }))
    for (const [loss, lose] of Object.entries(losses)) {
      const by = await caller(`${way}-${loss}`)
      const answered = ask(by)
      const job = await worker.job()
      await lose(by)
      await worker.report(job, { status: 'completed', result: { count: 'secret 42' } })
      const { status, said } = await answered
      t.equal(status, { nothing: 200, key: 401, right: 403 }[loss], `${way}: ${loss}`)
      t.equal(said.includes('secret 42'), loss === 'nothing', `${way}: ${loss}: ${said}`)
    }
  worker.close()
})
