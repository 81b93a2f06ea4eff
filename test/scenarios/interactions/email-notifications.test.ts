/**
 * Optional e-mail notifications to people, over a real connection to a mail server that sometimes
 * fails.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { listOf, until } from '../support/given.ts'
import { mailServer } from '../support/servers/mail-server.ts'

const lines: string[] = []
const write = (level: string) => (fields: object, text?: string) => {
  lines.push(`${level} ${text ?? ''} ${JSON.stringify(fields)}`)
}
const log = {
  trace: write('trace'),
  debug: write('debug'),
  info: write('info'),
  warn: write('warn'),
  error: write('error'),
  fatal: write('fatal'),
}
const mail = await mailServer((address, times) =>
  address.startsWith('busy@') && times === 1 ? 451 : address.startsWith('gone@') ? 550 : 250,
)
const s = await service(
  {
    BATON_NOTIFY_SMTP: `smtp://baton:pass-of-baton@127.0.0.1:${mail.port}`,
    BATON_NOTIFY_FROM: 'Baton <baton@example.org>',
    BATON_PUBLIC_URL: 'https://baton.example.org/x',
  },
  { log: log as never },
)
t.teardown(async () => {
  await s.stop()
  await mail.close()
})

const person = async (
  name: string,
  email?: string,
  role = 'Operator',
): Promise<{ id: string; key: string }> => {
  const user = await s.ok('user.create', { name, ...(email !== undefined && { email }) })
  await s.ok('assignment.create', { principal_id: user['id'], role_name: role })
  return {
    id: String(user['id']),
    key: String((await s.ok('token.create', { id: user['id'], name: 'x' }))['key']),
  }
}
const [ada, bo, cy, nobody] = await Promise.all([
  person('Ada Müller', 'ada@example.org'),
  person('Bo', 'busy@example.org'),
  person('Cy', 'cy@example.org', 'Editor'),
  person('No Body'),
])
await s.ok('project.update', { email_notifications: true })
const to = (address: string) => mail.letters.filter((letter) => letter.to === address)
const linkIn = (text: string): string | undefined =>
  /https:\/\/baton\.example\.org\/x(\/answer\/[\w-]+)/.exec(text)?.[1]
const ask = (more: Record<string, unknown>) =>
  s.ok('interaction.create', {
    kind: 'request_approval',
    title: 'Deploy?',
    spec: { mode: 'confirm' },
    ...more,
  })

t.test(
  'every target with an e-mail address gets a message and can answer by its link',
  async (t) => {
    const made = await ask({
      title: 'Grüße:\r\nBcc: evil@example.org',
      description: 'Build 88.\n.\nAll is well.',
      target_user_ids: [ada.id, bo.id, nobody.id, 'role:Editor'],
      resolution_policy: { type: 'quorum', threshold: 2 },
      expires_at: '2999-01-02T03:04:05Z',
    })
    await until(
      async () => mail.letters.length,
      (count) => count >= 3,
    )
    t.strictSame(
      mail.letters.map((letter) => letter.to).sort(),
      ['ada@example.org', 'busy@example.org', 'cy@example.org'],
      'one message each, also after a temporary rejection',
    )
    const [letter] = to('ada@example.org')
    t.match(letter, {
      from: 'baton@example.org',
      headers: {
        from: 'Baton <baton@example.org>',
        to: /Ada Müller"? <ada@example.org>/,
        subject: 'Grüße: Bcc: evil@example.org',
        'message-id': /^<[0-9a-f]{40}@example\.org>$/,
        'auto-submitted': 'auto-generated',
      },
    })
    t.notOk(letter?.headers['bcc'])
    t.match(
      letter?.text,
      /Hello Ada Müller,[\s\S]*Build 88\.\n\.\nAll is well\.[\s\S]*Answer here until 2999-01-02 03:04 UTC:/,
    )
    const [link, other] = [
      linkIn(letter?.text ?? ''),
      linkIn(to('busy@example.org')[0]?.text ?? ''),
    ]
    t.ok(link && other && link !== other)
    t.equal(linkIn(to('cy@example.org')[0]?.text ?? ''), undefined, 'a role has no link')
    t.match(
      await s.raw('POST', String(link), {
        key: null,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: 'value=true',
      }),
      { status: 200 },
    )
    t.match(await s.ok('interaction.get', { id: made['id'] }), {
      responses: [{ responder_user_id: ada.id }],
    })
    t.strictSame([...new Set(mail.logins)], ['baton:pass-of-baton'])
  },
)

t.test(
  "an interaction defines its recipients; only a target's own address gets the target's link",
  async (t) => {
    const before = mail.letters.length
    await ask({ target_user_ids: [ada.id], delivery: { channels: [{ kind: 'inbox_only' }] } })
    await ask({
      title: 'Where?',
      target_user_ids: [ada.id, bo.id],
      delivery: {
        channels: [
          {
            kind: 'email',
            email: {
              to: ['ADA@example.org', 'team@example.net', 'TEAM@example.net', 'gone@example.net'],
            },
          },
        ],
      },
    })
    await until(
      async () => mail.letters.length,
      (count) => count >= before + 2,
    )
    const letters = mail.letters.slice(before)
    t.strictSame(letters.map((letter) => [letter.to, linkIn(letter.text) !== undefined]).sort(), [
      ['ada@example.org', true],
      ['team@example.net', false],
    ])
    await until(async () => lines.find((line) => line.includes('smtp_message_rejected')), Boolean)
    t.notMatch(
      lines.join('\n'),
      /pass-of-baton|gone@example/,
      'neither secrets nor addresses are logged',
    )
    t.match(
      lines.filter((line) => /"event":"smtp/.test(line)),
      [/smtp_delivery_failed.*451/, /smtp_message_rejected.*550/],
    )
  },
)

t.test('reviewers are notified of a submission, and targets of requested changes', async (t) => {
  const before = mail.letters.length
  const made = await ask({
    kind: 'request_review',
    title: 'Read it',
    spec: { mode: 'input' },
    target_user_ids: [ada.id],
    resolution_policy: { type: 'any_of', review: { reviewer_user_ids: [cy.id] } },
  })
  await s.ok('interaction.respond', { id: made['id'], value: 'done' }, { key: ada.key })
  await until(
    async () => mail.letters.slice(before).map(({ headers }) => headers['subject']),
    (subjects) => subjects.includes('Review: Read it'),
  )
  await s.ok(
    'interaction.review',
    { id: made['id'], action: 'request_changes', comment: 'longer' },
    { key: cy.key },
  )
  await until(
    async () => mail.letters.at(-1)?.headers['subject'],
    (subject) => subject === 'Changes requested: Read it',
  )
  const last = mail.letters.at(-1)
  t.match(last, { to: 'ada@example.org', text: /Requested changes:\nlonger[\s\S]*Answer here/ })
  t.match(await s.raw('GET', String(linkIn(last?.text ?? '')), { key: null }), { status: 200 })
  t.match(
    mail.letters.find(({ headers }) => headers['subject'] === 'Review: Read it'),
    { to: 'cy@example.org' },
  )
  t.equal(
    listOf(await s.ok('interaction.list', { status: 'pending', target_user_id: ada.id })).some(
      ({ id }) => id === made['id'],
    ),
    true,
  )
  const sent = await ask({
    kind: 'request_review',
    title: 'Sent',
    spec: { mode: 'input' },
    target_user_ids: [ada.id],
    delivery: { channels: [{ kind: 'email', email: { to: ['ada@example.org'] } }] },
    resolution_policy: { type: 'any_of', review: { reviewer_user_ids: [cy.id] } },
  })
  await s.ok('interaction.respond', { id: sent['id'], value: 'done' }, { key: ada.key })
  await until(
    async () =>
      mail.letters
        .filter(({ headers }) => headers['subject'] === 'Review: Sent')
        .map(({ to }) => to)
        .join(),
    (to) => to === 'cy@example.org',
  )
})

t.test('email is sent only if the interaction or the project requests it', async (t) => {
  await s.ok('project.update', { email_notifications: false })
  const before = mail.letters.length
  await ask({ title: 'Unasked', target_user_ids: [ada.id, 'role:Editor'] })
  const delivery = { channels: [{ kind: 'email', email: { to: ['cy@example.org'] } }] }
  await ask({ title: 'Asked', target_user_ids: [cy.id], delivery })
  await until(
    async () => mail.letters.length,
    (count) => count > before,
  )
  const channels = [{ kind: 'inbox_only' }, { kind: 'email' }]
  await ask({ title: 'Without addresses', target_user_ids: [cy.id], delivery: { channels } })
  await until(
    async () => mail.letters.length,
    (count) => count > before + 1,
  )
  await s.ok('project.update', { email_notifications: true })
  await ask({ title: 'By setting', target_user_ids: [cy.id] })
  await until(
    async () => mail.letters.length,
    (count) => count > before + 2,
  )
  t.strictSame(
    mail.letters.slice(before).map(({ headers, to }) => [headers['subject'], to]),
    [
      ['Asked', 'cy@example.org'],
      ['Without addresses', 'cy@example.org'],
      ['By setting', 'cy@example.org'],
    ],
  )
})
