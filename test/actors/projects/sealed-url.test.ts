/**
 * URLs of actions and webhooks with sealed query values: what events and replies contain, and what
 * executors read before they send a request.
 */
import t from 'tap'
import { type AnyActor, defineActor } from '../../../actors/actor.ts'
import { organizationActor } from '../../../actors/projects/organization/organization.ts'
import { projectActor } from '../../../actors/projects/project.ts'
import { given, type Outcome, type Scene } from '../../support/given.ts'

const part = (text: string) => ({ sealed: `s ${text}`, digest: `d ${text}` })
const masked = 'https://example.org/hook?token=***'

interface Subject {
  readonly actor: AnyActor
  readonly field: 'url' | 'endpoint_url'
  readonly create: string
  readonly update: string
  readonly created: object
  readonly named: object
  /** The query that an executor uses to read the record. */
  readonly ask: readonly [string, object]
  /** The name of the field that contains the record, in the reply to that query and in events. */
  readonly record: 'action' | 'webhook'
}
const project = defineActor(projectActor({ brand: 'Acme' }))
const subjects: Readonly<Record<string, Subject>> = {
  'an action': {
    actor: project,
    field: 'endpoint_url',
    create: 'action.create',
    update: 'action.update',
    created: { name: 'crm.sync', sealed: 's1' },
    named: { action_name: 'crm.sync' },
    ask: ['action', { name: 'crm.sync' }],
    record: 'action',
  },
  'an action of the organization': {
    actor: defineActor(organizationActor({ brand: 'Acme' })),
    field: 'endpoint_url',
    create: 'organization_action.create',
    update: 'organization_action.update',
    created: { name: 'crm.sync', sealed: 's1' },
    named: { action_id: 'act_1' },
    ask: ['action', { name: 'crm.sync' }],
    record: 'action',
  },
  'a webhook': {
    actor: project,
    field: 'url',
    create: 'webhook.create',
    update: 'webhook.update',
    created: { name: 'hook', sealed: 's1' },
    named: { webhook_id: 'wbh_1' },
    ask: ['webhook', { webhook_id: 'wbh_1' }],
    record: 'webhook',
  },
}

for (const [name, subject] of Object.entries(subjects)) {
  const { actor, field, create, update, created, named, ask, record } = subject
  const made = (url: string, url_parts?: unknown): Outcome<never> =>
    given(actor).when(create, { ...created, [field]: url, ...(url_parts ? { url_parts } : {}) })
  const change = (scene: Scene<never>, url: string, url_parts: unknown): Outcome<never> =>
    scene.when(update, { ...named, [field]: url, url_parts })
  const keptBy = (scene: Scene<never>) =>
    scene.ask(...ask) as { readonly url_parts?: unknown } & Readonly<
      Record<'action' | 'webhook', Readonly<Record<string, unknown>>>
    >

  t.test(`${name} stores the query values of its URL separately from the record`, async (t) => {
    const first = made(masked, [part('t0p')])
    t.match(first.reply, { [field]: masked })
    t.notMatch(JSON.stringify(first.reply), /s t0p/)
    t.match(keptBy(first), { url_parts: [part('t0p')], [record]: { [field]: masked } })

    const renamed = first.when(update, { ...named, tags: { a: 'b' }, title: 'New', enabled: false })
    t.equal(renamed.events.length, 1)
    t.match(keptBy(renamed), { url_parts: [part('t0p')] }, 'another change leaves them')

    t.strictSame(change(first, masked, [null]).events, [], 'the mask changes nothing')
    t.strictSame(change(first, masked, [part('t0p')]).events, [], 'nor does the same value')

    const rotated = change(first, masked, [part('new')])
    t.match(rotated.events, [{ changes: { [field]: { from: masked, to: masked } } }])
    t.match(keptBy(rotated), { url_parts: [part('new')] })
    t.match(rotated.reply, { [field]: masked })

    const wider = change(first, `${masked}&mode=***`, [null, part('fast')])
    t.match(keptBy(wider), { url_parts: [part('t0p'), part('fast')] })

    const plain = change(first, 'https://example.org/other', [])
    t.notOk('url_parts' in keptBy(plain))
    t.match(keptBy(plain), { [record]: { [field]: 'https://example.org/other' } })
  })

  t.test(`${name} never sends a stored value to another URL`, async (t) => {
    const first = made(masked, [part('t0p')])
    for (const url of ['https://evil.example/hook?token=***', 'https://example.org/?token=***'])
      t.match(change(first, url, [null]).refused, {
        refused: 'bad_request',
        details: { fields: [{ field, message: /for a new address/ }] },
      })
    t.match(made(masked, [null]).refused, { refused: 'bad_request' }, 'a mask needs a stored value')
  })

  t.test(
    `${name} of an earlier release stores its URL in clear text and returns it masked`,
    async (t) => {
      const clear = 'https://example.org/hook?token=t0p'
      const old = made(clear)
      t.match(old.reply, { [field]: masked })
      t.match(keptBy(old), { [record]: { [field]: clear } }, 'senders have it')
      const renamed = old.when(update, { ...named, tags: { a: 'b' }, title: 'New', enabled: false })
      t.match(renamed.reply, { [field]: masked })
      t.match(keptBy(renamed), { [record]: { [field]: clear } })
      t.strictSame(change(old, masked, [null]).events, [])
      const sealed = change(old, masked, [part('t0p')])
      t.match(keptBy(sealed), { url_parts: [part('t0p')], [record]: { [field]: masked } })
      t.notMatch(JSON.stringify(sealed.events), /=t0p/, 'the old address is not written again')
    },
  )
}

t.test('a webhook whose URL is removed loses the stored values', async (t) => {
  const first = given(project).when('webhook.create', {
    name: 'hook',
    sealed: 's1',
    url: masked,
    url_parts: [part('t0p')],
  })
  const emptied = first.when('webhook.update', { webhook_id: 'wbh_1', url: '', url_parts: [] })
  t.notOk('url_parts' in (emptied.ask('webhook', { webhook_id: 'wbh_1' }) as object))
})

t.test('a webhook test uses the stored values, or those of its own URL', async (t) => {
  const first = given(project).when('webhook.create', {
    name: 'hook',
    sealed: 's1',
    url: masked,
    url_parts: [part('t0p')],
  })
  const ping = (url: string, url_parts: unknown) =>
    first.when('webhook.ping', { webhook_id: 'wbh_1', url, url_parts })
  const opened = ({ tells }: Outcome<never>) => (tells[0]?.input as { to: object } | undefined)?.to
  t.match(opened(ping(masked, [null])), { url: masked, url_parts: [part('t0p')] })
  t.match(opened(ping('https://x.example/?a=***', [part('b')])), {
    url: 'https://x.example/?a=***',
    url_parts: [part('b')],
  })
  t.match(ping('https://x.example/?token=***', [null]).refused, { refused: 'bad_request' })
})
