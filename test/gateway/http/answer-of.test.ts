/** The HTTP responses for refusals. */
import t from 'tap'
import { answerOf } from '../../../gateway/serve.ts'
import { type Code, refuse } from '../../../protocol/errors.ts'

t.test('a refusal with a code of a newer release is answered', async (t) => {
  const answer = answerOf(refuse('code_of_a_newer_release' as Code, { secret: 'x' }))
  t.match(answer, {
    status: 503,
    body: { error: { code: 'service_unavailable' } },
    headers: { 'Retry-After': '1' },
  })
  t.notMatch(JSON.stringify(answer), 'secret')
})

t.test('temporary refusals name a delay in whole seconds', async (t) => {
  t.match(answerOf(refuse('service_unavailable', { retry_after: 1.2 })).headers, {
    'Retry-After': '2',
  })
  t.equal(answerOf(refuse('not_found')).headers, undefined)
})

t.test('a refusal of a credential names the scheme of credentials', async (t) => {
  t.strictSame(answerOf(refuse('unauthorized')).headers, { 'WWW-Authenticate': 'Bearer' })
  t.equal(answerOf(refuse('permission_denied')).headers, undefined)
})
