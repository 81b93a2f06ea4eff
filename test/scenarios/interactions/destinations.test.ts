/** Where the outcome and the e-mails of an interaction go: callback URLs and addresses. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { fieldsOf } from '../support/given.ts'
import { person } from '../support/people.ts'

const s = await service()
t.teardown(() => s.stop())
const ada = await person(s, 'ada')
/** Returns the faulty fields of a new interaction, which must be refused. */
const faultyFields = async (body: Record<string, unknown>): Promise<string[]> => {
  const asked = { kind: 'request_approval', title: 'Go?', target_user_ids: [ada.id], ...body }
  return fieldsOf(await s.refused('interaction.create', asked, 400, 'bad_request'))
}

t.test('a callback URL that the service cannot or may not call is refused', async (t) => {
  const urls = [
    'ftp://x',
    'http://[::1',
    'http://a:99999/',
    'http://%zz/',
    'http://:80/',
    'https:example.org',
    'https://user:secret@example.org/',
    'http://10.1.1.1/',
  ]
  for (const callback_url of urls)
    t.strictSame(
      await faultyFields({
        consumer: { kind: 'http_subscriber', http_subscriber: { callback_url, secret_ref: 'a' } },
      }),
      ['consumer.http_subscriber.callback_url'],
      callback_url,
    )
})

t.test('an address that is no recipient of an e-mail is refused', async (t) => {
  const email = (...to: string[]) => ({ kind: 'email', email: { to } })
  for (const address of ['not an address', 'a@b, c@d', '"A" <a@b>', 'a@b\r\nRCPT TO:<c@d>'])
    t.strictSame(
      await faultyFields({ delivery: { channels: [email('ada@example.org', address)] } }),
      ['delivery.channels[0].email.to[1]'],
      address,
    )
  const inbox = { ...email('ada@example.org'), kind: 'inbox_only' }
  t.strictSame(await faultyFields({ delivery: { channels: [inbox] } }), [
    'delivery.channels[0].email',
  ])
})
