/** The runs that a bulk action selects when the clocks of nodes differ. */
import t from 'tap'
import { gateway, home } from '../support/edge-world.ts'

const MINUTE = 60_000
const path = `/v1/projects/${home}/runs/bulk`
const cancel = { action: 'cancel', filter: { workflow_type: 'import' } }

/** Creates a gateway whose view contains one run that was created `ahead` ms after its time. */
async function scene(ahead: number, more: object = {}) {
  const at = await gateway()
  t.teardown(() => at.server.stop())

  const created_at = new Date(at.world.now() + ahead).toISOString()
  const asked: { created_before?: string; order?: string }[] = []
  at.views['run.list'] = (input) => {
    asked.push(input as object)
    return { items: [{ id: 'run_01AAAAAAAAAAAAAAAAAAAAAA0C', created_at }], ...more }
  }
  at.views['run.count'] = () => ({ count: 1, more: false })
  at.on['bulk_request.select'] = ({ input }) => ({ reply: input })
  at.on['run.cancel'] = () => ({ reply: { id: 'run_1', status: 'cancelled' } })
  return { at, asked, created_at }
}

t.test('the first request takes runs whose shard has a clock that is ahead', async (t) => {
  const { at, asked } = await scene(MINUTE)
  const answer = await at.call('POST', path, cancel, { 'idempotency-key': 'a' })
  t.equal(answer.status, 200, answer.text)
  t.strictSame(
    asked.map((one) => one.created_before),
    [undefined],
  )
})

t.test('later requests exclude only runs that were created after the first one', async (t) => {
  const bound = async (ahead: number) => {
    const { at, asked, created_at } = await scene(ahead, { position: [1, 'run_1'] })
    const preview = await at.call('POST', path, { ...cancel, preview: true })
    t.equal(preview.status, 200, preview.text)
    const { next } = preview.body as unknown as { next: string }
    const now = at.world.now()
    await at.call('POST', path, { ...cancel, after: next })
    const before = Date.parse(asked.at(-1)?.created_before ?? '')
    return { before, created: Date.parse(created_at), now }
  }
  const ahead = await bound(MINUTE)
  t.equal(ahead.before, ahead.created + 1, 'the newest run is included')
  const behind = await bound(-MINUTE)
  t.ok(behind.before > behind.created && behind.before <= behind.now + 1)
})
