/**
 * Optional webhook notifications to people: delivered at least once, signed, and with working
 * links.
 */
import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { service } from '../../support/service.ts'
import { listOf, until } from '../support/given.ts'
import { as, people } from '../support/people.ts'

interface Got {
  readonly headers: Readonly<Record<string, unknown>>
  readonly text: string
  readonly body: Record<string, never>
}
const got: Got[] = []
const receiver = createServer((request, response) => {
  let text = ''
  request.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  request.on('end', () => {
    got.push({ headers: request.headers, text, body: JSON.parse(text) as Got['body'] })
    response.statusCode = got.length === 1 ? 500 : 204
    response.end()
  })
})
await new Promise<void>((done) => receiver.listen(0, '127.0.0.1', done))
const secret = 'a-secret-of-the-receiver'
const s = await service({
  BATON_NOTIFY_URL: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`,
  BATON_NOTIFY_SECRET: secret,
  BATON_PUBLIC_URL: 'https://baton.example.org/x',
})
t.teardown(async () => {
  await s.stop()
  receiver.close()
})

t.test(
  'targets are notified by webhook, again after a failure, and can answer by their links',
  async (t) => {
    const [ada, bo] = await people(s, 'ada', 'bo')
    const made = await s.ok('interaction.create', {
      kind: 'request_review',
      title: 'Read it',
      target_user_ids: [ada?.id, 'role:Editor'],
      spec: { mode: 'input' },
      resolution_policy: { type: 'any_of', review: { reviewer_user_ids: [bo?.id] } },
    })
    await until(
      async () => got.length,
      (count) => count >= 2,
    )
    const [first, second] = got
    t.strictSame(second?.body, first?.body, 'the same message under the same id')
    t.match(first?.body, {
      type: 'interaction.requested',
      delivery_id: /./,
      project_id: /^prj_/,
      interaction: { id: made['id'], title: 'Read it', status: 'pending', kind: 'request_review' },
      recipients: [
        { user_id: ada?.id, answer_url: /^https:\/\/baton\.example\.org\/x\/answer\/[\w-]+$/ },
        { user_id: 'role:Editor', answer_url: undefined },
      ],
    })
    const { headers, text } = second as Got
    t.equal(headers['idempotency-key'], headers['x-service-delivery-id'])
    t.equal(
      headers['x-service-signature'],
      `sha256=${createHmac('sha256', secret)
        .update(
          `v1.${String(headers['x-service-delivery-id'])}.${String(headers['x-service-timestamp'])}.${text}`,
        )
        .digest('hex')}`,
    )
    const path = String(listOf(first?.body ?? {}, 'recipients')[0]?.['answer_url']).replace(
      'https://baton.example.org/x',
      '',
    )
    t.match(
      await s.raw('POST', path, {
        key: null,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: 'value=good',
      }),
      { status: 200 },
    )
    await until(
      async () => got.at(-1)?.body,
      (body) => body?.['type'] === 'interaction.submitted',
    )
    t.match(got.at(-1)?.body, { recipients: [{ user_id: bo?.id }] })
    await s.ok(
      'interaction.review',
      { id: made['id'], action: 'request_changes', comment: 'longer' },
      as(bo as { id: string; key: string }),
    )
    await until(
      async () => got.at(-1)?.body,
      (body) => body?.['type'] === 'interaction.changes_requested',
    )
    t.not(
      listOf(got.at(-1)?.body ?? {}, 'recipients')[0]?.['answer_url'],
      listOf(first?.body ?? {}, 'recipients')[0]?.['answer_url'],
      'a new round has a new link',
    )
  },
)
