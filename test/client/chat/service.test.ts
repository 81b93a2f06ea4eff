/** The requests of the chat page: which failures are repeated. */
import t from 'tap'
import { createService, type Refused } from '../../../client/chat/service.ts'

t.test('requests are repeated after temporary failures, with one key', async (t) => {
  const { fetch, setTimeout } = globalThis
  t.teardown(() => Object.assign(globalThis, { fetch, setTimeout }))
  const keys: (string | null)[] = []
  let answers: number[] = []
  Object.assign(globalThis, {
    // Pauses end immediately.
    setTimeout: (run: () => void) => queueMicrotask(run),
    fetch: async (_: string, { headers }: { readonly headers: Record<string, string> }) => {
      keys.push(new Headers(headers).get('idempotency-key'))
      const status = answers.shift() ?? 200
      if (status === 0) throw new TypeError('network')
      return Response.json({ id: 'ses_1', error: { code: 'x', message: 'x' } }, { status })
    },
  })
  const service = createService({ key: 'k', project: 'p' })
  for (const status of [0, 429, 500, 502, 503, 504, 505]) {
    keys.length = 0
    answers = [status, 200]
    t.match(await service.open('agt_1'), { id: 'ses_1' }, String(status))
    t.equal(keys.length, 2)
    t.equal(new Set(keys).size, 1)
  }
  keys.length = 0
  answers = [409, 200]
  t.equal(await service.open('agt_1').catch(({ status }: Refused) => status), 409)
  t.equal(keys.length, 1)
})
