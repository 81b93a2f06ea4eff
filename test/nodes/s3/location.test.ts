/** Which bucket a start accepts after files were stored in another one. */
import t from 'tap'
import { settleLocation } from '../../../nodes/s3/location.ts'
import { MemoryBlobs } from '../../support/memory.ts'

const first = { bucket: 'one', prefix: 'team/', region: 'r' }
const second = { ...first, bucket: 'two', endpoint: 'https://s3.example.org' }

t.test('a start without the bucket of the files is refused', async (t) => {
  const [nats, one] = [new MemoryBlobs(), new MemoryBlobs()]
  await settleLocation(undefined, nats, nats, 'org_1')
  t.equal(nats.values.size, 0, 'without a bucket, nothing is recorded')
  await settleLocation(first, nats, one, 'org_1')
  await settleLocation(first, nats, one, 'org_1')
  await t.rejects(settleLocation(undefined, nats, nats, 'org_1'), {
    name: 'StartFault',
    message: /stored in s3:\/\/one\/team\/, but BATON_ARTIFACTS is not set/,
  })
})

t.test('another bucket is accepted once all objects were copied to it', async (t) => {
  const [nats, one, two] = [new MemoryBlobs(), new MemoryBlobs(), new MemoryBlobs()]
  await settleLocation(first, nats, one, 'org_1')
  const refused = {
    name: 'StartFault',
    message: /stored in s3:\/\/one\/team\/, .* is s3:\/\/two\/team\/ at https:\/\/s3\.example\.org/,
  }
  await t.rejects(settleLocation(second, nats, two, 'org_1'), refused)
  await two.put('installation', Buffer.from('org_2'))
  await t.rejects(settleLocation(second, nats, two, 'org_1'), refused, 'of another installation')
  for (const [name, value] of one.values) await two.put(name, value)
  await settleLocation(second, nats, two, 'org_1')
  await t.rejects(settleLocation(undefined, nats, nats, 'org_1'), { message: /s3:\/\/two\/team\// })
})
