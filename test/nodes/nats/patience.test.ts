/**
 * Startup of a node during a leader election of the NATS servers: the node retries, logs the
 * reason, and finally reports what to check.
 */
import t from 'tap'
import { retryOperation } from '../../../nodes/nats/server/retry-operation.ts'
import { StartFault } from '../../../nodes/process/fault.ts'
import { silentLog } from '../../support/memory.ts'

const nats = { log: silentLog }

t.test('a temporary failure is retried', async (t) => {
  let tries = 0
  const result = await retryOperation(nats, 'a thing', async () => {
    if (++tries < 3) throw new Error('JetStream system temporarily unavailable')
    return 'made'
  })
  t.equal(result, 'made')
  t.equal(tries, 3)
})

t.test('a permanent failure is reported at once', async (t) => {
  let tries = 0
  await t.rejects(
    retryOperation(nats, 'a thing', () => {
      tries++
      return Promise.reject(new StartFault('the layout is another one'))
    }),
    { name: 'StartFault', message: 'the layout is another one' },
  )
  t.equal(tries, 1)
})

t.test('after the time limit, the error says what to check', async (t) => {
  await t.rejects(
    retryOperation(nats, 'a thing', () => Promise.reject(new Error('no leader')), 50),
    {
      name: 'StartFault',
      message: /a thing cannot be set up: no leader\. Check that all NATS servers/,
    },
  )
})
