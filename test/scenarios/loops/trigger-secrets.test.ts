/** Signing secrets of HTTP triggers that a changed or copied loop would lose. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { until } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
const steps = [{ id: 'nap', kind: 'sleep', config: { duration: '0' } }]

t.test('the placeholder of a secret is refused where no secret is stored', async (t) => {
  const body = { name: 'Copied', steps, triggers: [{ kind: 'http', key: 'in' }] }
  const signedBy = (key: string, signing_secret: string) => ({
    settings: { http_triggers: { [key]: { signing_secret } } },
  })
  const fields = (key: string) => ({
    details: { fields: [{ field: `settings.http_triggers.${key}.signing_secret` }] },
  })
  const copy = { ...body, ...signedBy('in', '[redacted]') }
  t.match(await s.refused('loop.create', copy, 400, 'bad_request'), fields('in'))
  const { id } = await s.ok('loop.create', { ...body, ...signedBy('in', 'a secret of it') })
  const renamed = {
    id,
    triggers: [{ kind: 'http', key: 'out' }],
    ...signedBy('out', '[redacted]'),
  }
  t.match(await s.refused('loop.update', renamed, 400, 'bad_request'), fields('out'))
  await s.ok('loop.update', { ...renamed, ...signedBy('out', 'a secret of it') })
  t.match(
    await s.ok('loop.update', { id, ...signedBy('out', '[redacted]') }),
    signedBy('out', '[redacted]'),
  )
})

t.test('a handle does not lose its signature when the key of its trigger changes', async (t) => {
  const keyed = (key: string) => [{ kind: 'http', key, config: { http_handle: 'kept' } }]
  const secret = (key: string) => ({
    settings: { http_triggers: { [key]: { signing_secret: 'a secret of it' } } },
  })
  const body = { name: 'Renamed', steps, triggers: keyed('in'), ...secret('in') }
  const { id } = await s.ok('loop.create', body)
  t.match(await s.refused('loop.update', { id, triggers: keyed('out') }, 400, 'bad_request'), {
    details: { fields: [{ field: 'triggers[0].key', actual: 'out' }] },
  })
  await s.ok('loop.update', { id, triggers: keyed('out'), ...secret('out') })
  const unsigned = () =>
    s.raw('POST', '/v1/triggers/http/kept', {
      key: null,
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
  const { status } = await until(unsigned, (answer) => answer.status !== 404)
  t.equal(status, 401)
  await s.ok('loop.update', { id, triggers: keyed('in'), settings: {} })
  await s.ok('loop.update', { id, triggers: keyed('out') })
})

t.test('settings for a key that names no HTTP trigger are refused', async (t) => {
  const signing_secret = 'a secret of it'
  const settings = (...keys: string[]) => ({
    settings: { http_triggers: Object.fromEntries(keys.map((key) => [key, { signing_secret }])) },
  })
  const triggers = [
    { kind: 'http', key: 'deploy' },
    { kind: 'schedule', key: 'beat', config: { interval: '1h' } },
    { kind: 'http' },
  ]
  const faults = (key: string) => ({
    details: {
      fields: [
        {
          field: `settings.http_triggers.${key}`,
          message: 'names no HTTP trigger of the loop',
          expected: ['deploy', '#2'],
        },
      ],
    },
  })
  const body = { name: 'Misspelt', steps, triggers }
  for (const key of ['deplyo', 'beat'])
    t.match(
      await s.refused('loop.create', { ...body, ...settings(key) }, 400, 'bad_request'),
      faults(key),
    )
  const { id } = await s.ok('loop.create', { ...body, ...settings('deploy', '#2') })
  t.match(
    await s.refused('loop.update', { id, ...settings('deplyo') }, 400, 'bad_request'),
    faults('deplyo'),
  )
  t.match(
    await s.refused('loop.update', { id, triggers: [], ...settings('deploy') }, 400, 'bad_request'),
    { details: { fields: [{ field: 'settings.http_triggers.deploy' }] } },
  )
  await s.ok('loop.update', { id, triggers: [{ kind: 'http' }] })
  const kept = { deploy: { signing_secret: '[redacted]' }, '#2': {} }
  t.match(
    await s.ok('loop.update', { id, settings: { http_triggers: kept, theme: 'dark' } }),
    { settings: { http_triggers: kept, theme: 'dark' } },
    'settings that remained after the removal of their trigger can be sent back',
  )
  await s.refused('loop.update', { id, ...settings('deploy') }, 400, 'bad_request')
})

t.test('settings of a trigger that cannot have an effect are refused', async (t) => {
  const settings = (settings: unknown) => ({ settings: { http_triggers: { in: settings } } })
  const body = { name: 'Mistyped', steps, triggers: [{ kind: 'http', key: 'in' }] }
  const mistakes = [
    ['a secret of it', 'settings.http_triggers.in'],
    [null, 'settings.http_triggers.in'],
    [{ secrte: 'a secret of it' }, 'settings.http_triggers.in.secrte'],
    [
      { signing_secret: 'a secret of it', algorithm: 'none' },
      'settings.http_triggers.in.algorithm',
    ],
  ] as const
  const { id } = await s.ok('loop.create', body)
  for (const [mistake, field] of mistakes)
    for (const [name, input] of [
      ['loop.create', body],
      ['loop.update', { id }],
    ] as const) {
      const refused = await s.refused(name, { ...input, ...settings(mistake) }, 400, 'bad_request')
      t.match(refused, { details: { fields: [{ field }] } }, `${name}: ${JSON.stringify(mistake)}`)
      t.notMatch(JSON.stringify(refused), /a secret of it/, 'the refusal does not show the secret')
    }
  await s.ok('loop.update', { id, ...settings({}) })
})
