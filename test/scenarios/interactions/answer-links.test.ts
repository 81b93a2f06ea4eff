/** Answer links: a person can use a link once to answer without signing in. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { fieldsOf, listOf, until } from '../support/given.ts'
import { as, people } from '../support/people.ts'

const s = await service()
t.teardown(() => s.stop())
const [ada, bo] = await people(s, 'ada', 'bo')
if (!ada || !bo) throw new Error('nobody came')
const ask = (more: Record<string, unknown> = {}) =>
  s.ok('interaction.create', {
    kind: 'request_approval',
    title: 'Deploy <b>now</b>?',
    target_user_ids: [ada.id, bo.id],
    spec: { mode: 'confirm' },
    ...more,
  })
const linksOf = async (id: unknown): Promise<Record<string, string>> =>
  Object.fromEntries(
    listOf(await s.ok('interaction.link', { id })).map((link) => [
      String(link['target_user_id']),
      String(link['url']),
    ]),
  )
const get = (url: string) => s.raw('GET', url, { key: null })
const post = (url: string, body: string) =>
  s.raw('POST', url, {
    key: null,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body,
  })

t.test('a link shows one question and accepts one answer', async (t) => {
  const made = await ask({
    description: '"Build" & <script>alert(1)</script>',
    context: { build: '<88>' },
    resolution_policy: 'all_of',
  })
  const links = await linksOf(made['id'])
  t.strictSame(Object.keys(links).sort(), [ada.id, bo.id].sort())
  const url = String(links[ada.id])
  const page = await get(url)
  t.match(page, { status: 200 })
  t.match(page.headers.get('content-type'), /text\/html/)
  t.match(
    page.headers.get('content-security-policy'),
    /default-src 'none'.*form-action 'self'.*frame-ancestors 'none'/,
  )
  t.strictSame(
    ['cache-control', 'referrer-policy', 'x-content-type-options'].map((name) =>
      page.headers.get(name),
    ),
    ['no-store', 'no-referrer', 'nosniff'],
  )
  t.match(page.text, 'Deploy &#60;b&#62;now&#60;/b&#62;?')
  t.notMatch(page.text, /<script|<b>|<88>/, 'everything is escaped')
  t.match(
    page.text,
    /<label class="choice"><input type="radio" name="value" value="true" required> Yes<\/label>/,
  )
  t.match(page.text, /<label class="field" for="comment">.*\n<textarea id="comment"/)
  t.match(
    await post(url, 'comment=x%22%3C'),
    { status: 400, text: /choose an answer[\s\S]*>\nx&#34;&#60;<\/textarea>/ },
    'no option was chosen',
  )
  t.match(
    await post(url, `value=true&comment=${'x'.repeat(16_385)}`),
    { status: 400, text: /comment is too long/ },
    'the comment is not truncated',
  )
  t.match(await post(url, 'value=true&comment=gr%C3%BCn+%26%0D%0Agut'), {
    status: 200,
    text: /Thank you/,
  })
  t.match(await s.ok('interaction.get', { id: made['id'] }), {
    status: 'pending',
    responses: [{ responder_user_id: ada.id, value: true, comment: 'grün &\ngut' }],
  })
  t.match(await get(url), { status: 410, text: /already received/ })
  t.match(await post(url, 'value=false'), { status: 410, text: /already received/ })
  t.match(await post(String(links[bo.id]), 'value=false'), { status: 200 })
  t.match(await s.ok('interaction.get', { id: made['id'] }), {
    status: 'completed',
    outcome: false,
    responder: { user_id: bo.id },
  })
  const log = listOf(await s.ok('audit.list', { resource_id: made['id'], actor_id: ada.id }))
  t.match(log, [
    {
      resource_type: 'interaction',
      action: 'update',
      actor_type: 'service_account',
      credential_type: 'internal',
      credential_id: /^answer_link:[0-9a-f]{24}$/,
      changes: { response: { to: { value: true } } },
    },
  ])
  t.notMatch(JSON.stringify(log), url.slice(-40), 'the audit log contains no link')
})

t.test('every mode of a question has its form', async (t) => {
  const options = ['a', 'b'].map((value) => ({
    value,
    label: `Option ${value}`,
    description: 'why',
  }))
  for (const [kind, spec, body, value] of [
    ['request_information', { mode: 'select', options, default_value: 'b' }, 'value=a', 'a'],
    [
      'request_information',
      { mode: 'multi_select', options, default_values: ['a'] },
      'value=a&value=b',
      ['a', 'b'],
    ],
    ['request_information', { mode: 'multi_select', options }, 'comment=', []],
    [
      'request_review',
      { mode: 'input', multiline: true, default_text: '<draft>', placeholder: 'say "so"' },
      'value=one%0D%0Atwo',
      'one\ntwo',
    ],
    ['request_information', { mode: 'input' }, 'value=', ''],
  ] as const) {
    const made = await ask({ kind, spec, target_user_ids: [ada.id] })
    const url = String((await linksOf(made['id']))[ada.id])
    t.match(await get(url), {
      status: 200,
      text: spec.mode === 'input' ? /<label class="field" for="value">/ : /<legend>/,
    })
    if ('options' in spec)
      t.match(await post(url, 'value=odd&value=a'), {
        status: 400,
        text:
          spec.mode === 'select'
            ? /role="alert"(?![\s\S]* checked)/
            : /role="alert"[\s\S]*value="a" checked/,
      })
    t.match(await post(url, body), { status: 200 })
    t.match(await s.ok('interaction.get', { id: made['id'] }), { outcome: value })
  }
})

t.test('a link is unusable once its question is closed, and cannot be guessed', async (t) => {
  const over = async (
    end: (id: unknown) => Promise<unknown>,
    more: Record<string, unknown> = {},
  ): Promise<void> => {
    const made = await ask(more)
    const url = String((await linksOf(made['id']))[ada.id])
    await end(made['id'])
    t.match(await get(url), { status: 410, text: /<h1>This link is no longer valid<\/h1>/ })
    t.match(await post(url, 'value=true'), { status: 410 })
    t.notMatch(
      await s.call('interaction.get', { id: made['id'] }).then(({ body }) => JSON.stringify(body)),
      `"responder_user_id":"${ada.id}"`,
    )
  }
  await over((id) => s.ok('interaction.cancel', { id }))
  await over((id) => s.ok('interaction.respond', { id, value: true }, as(bo)))
  await over(
    (id) =>
      until(
        () => s.ok('interaction.get', { id }),
        ({ status }) => status === 'expired',
      ),
    { expires_at: new Date(Date.now() + 400).toISOString() },
  )
  await over((id) =>
    s.ok('interaction.cancel', { id }).then(() => s.ok('interaction.delete', { id })),
  )
  await over(() => s.ok('principal.update', { id: ada.id, state: 'disabled' }))
  await s.ok('principal.update', { id: ada.id, state: 'active' })
  const review = {
    kind: 'request_review',
    spec: { mode: 'input' },
    target_user_ids: [ada.id],
    resolution_policy: { type: 'any_of', review: { reviewer_user_ids: [bo.id] } },
  }
  const made = await ask(review)
  const first = String((await linksOf(made['id']))[ada.id])
  t.match(await post(first, 'value=draft'), { status: 200 })
  await s.refused('interaction.link', { id: made['id'] }, 409, 'conflict')
  await s.ok(
    'interaction.review',
    { id: made['id'], action: 'request_changes', comment: 'shorter' },
    as(bo),
  )
  t.match(await post(first, 'value=again'), { status: 410 }, 'a link of an earlier round')
  const second = String((await linksOf(made['id']))[ada.id])
  t.match(await get(second), { status: 200, text: /Requested changes[\s\S]*shorter/ })
  t.match(await post(second, 'value=final'), { status: 200 })
  for (const odd of [
    '/answer/x',
    '/answer/',
    `${first.slice(0, -2)}AA`,
    `${first}A`,
    `${first}=`,
    `/answer/${'x'.repeat(3000)}`,
  ])
    t.match(await get(odd), { status: 404 }, odd.slice(0, 20))
  t.match(await s.raw('PUT', first), { status: 405 })
  t.match(await s.raw('HEAD', first, { key: null }), { status: 410, text: '' })
})

t.test('only administrators create links, for people who can still answer', async (t) => {
  const made = await ask({ target_user_ids: [ada.id, 'role:Editor'] })
  await s.refused('interaction.link', { id: made['id'] }, 403, 'permission_denied', as(ada))
  t.match(await s.ok('interaction.link', { id: made['id'] }), {
    items: [{ target_user_id: ada.id }],
  })
  t.strictSame(
    fieldsOf(
      await s.refused(
        'interaction.link',
        { id: made['id'], target_user_ids: [ada.id, bo.id] },
        400,
        'bad_request',
      ),
    ),
    ['target_user_ids[1]'],
  )
  t.strictSame(
    fieldsOf(
      await s.refused(
        'interaction.link',
        { id: made['id'], target_user_ids: ['role:Editor'] },
        400,
        'bad_request',
      ),
    ),
    ['target_user_ids[0]'],
  )
})
