/** A damaged last entry of a shard, with real NATS servers: what the readiness check reports. */
import t from 'tap'
import { envelopeHeaders } from '../../../nodes/nats/envelope.ts'
import { newest } from '../../../nodes/nats/journal/newest.ts'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import { names, subjects } from '../../../protocol/subjects.ts'
import { silentLog } from '../../support/memory.ts'
import { service } from '../../support/service.ts'
import { until } from '../support/given.ts'

const s = await service({ BATON_SHARDS: '2' })
t.teardown(() => s.stop())

/** Appends an entry to a shard whose checksum does not match. */
async function appendDamaged(shard: number): Promise<void> {
  const access = s.server.access
  const nats = await connectNats({ access, name: 'test', log: silentLog, role: 'test' })
  const subject = subjects.journal(0, shard)
  const last = await newest(nats, names.journal(0), subject, 5000)
  const headers = envelopeHeaders(Buffer.from('one'), 'damaged', last?.sequence ?? 0)
  await nats.publish(subject, Buffer.from('two'), headers, 5000)
  await nats.close()
}
const readiness = (query: string) =>
  until(
    () => s.raw('GET', `/readyz${query}`, { key: null }),
    ({ text }) => text.includes('journal: '),
  )

t.test('a damaged last entry does not make all gateways refuse reads', async (t) => {
  await s.restart(() => appendDamaged(1))
  const reason = /^journal: message \d+ of JOURNAL_0 is damaged/
  t.match(await readiness(''), { status: 503, body: { reasons: [reason] } })
  t.match(await readiness('?for=reads'), { status: 200, body: { warnings: [reason] } })
})
