/** Comparison of inputs with records: omitted and empty values, secrets, hashes and drift. */
import t from 'tap'
import {
  appliedHashes,
  canonicalJson,
  configuredFields,
  differencesOf,
  driftOf,
  withReferences,
} from '../../../protocol/blueprints/compare.ts'
import type { ResourceTypeName } from '../../../protocol/blueprints/resources.ts'
import { resourceFacts } from '../../../protocol/blueprints/types.ts'
import { bound, free, hash } from './given.ts'

const differing = (type: ResourceTypeName, wanted: object, record: object) =>
  differencesOf(type, { ...wanted }, free(type, 'x_1', { ...record }), hash).map(
    ({ field }) => field,
  )

t.test('the canonical form does not depend on the order of members', async (t) => {
  t.equal(canonicalJson({ b: [{ d: 1, c: 2 }], a: null }), '{"a":null,"b":[{"c":2,"d":1}]}')
  t.equal(canonicalJson({ a: undefined, b: 1 }), canonicalJson({ b: 1 }))
  t.not(canonicalJson([1, 2]), canonicalJson([2, 1]))
  t.equal(canonicalJson(undefined), '')
})
t.test('omitted fields are not compared, empty ones mean that the record has none', async (t) => {
  const record = { name: 'n', description: 'd', tags: { a: '1' }, allowed_tools: ['x'] }
  t.strictSame(differing('skill', { name: 'n' }, record), [])
  t.strictSame(
    differing('skill', { name: 'n', description: '', tags: {}, allowed_tools: [] }, record),
    ['description', 'tags', 'allowed_tools'],
  )
  t.strictSame(
    differing('skill', { description: '', tags: {}, allowed_tools: [] }, { name: 'n' }),
    [],
  )
  t.strictSame(
    configuredFields('skill', { key: 'k', name: 'n', description: '', moved_from: 'x' }),
    {
      name: 'n',
      description: '',
    },
  )
  t.strictSame(
    configuredFields('skill', { key: 'k', name: 'n', description: undefined }),
    { name: 'n' },
    'an undefined member is an omitted one',
  )
})
t.test('a default equals an absent value, in both directions', async (t) => {
  for (const [type, { fields }] of Object.entries(resourceFacts))
    for (const [field, { empty, as }] of Object.entries(fields)) {
      if (empty === undefined) continue
      const one = type as ResourceTypeName
      t.strictSame(differing(one, { [field]: empty }, {}), [], `${type}.${field}`)
      t.strictSame(differing(one, { [field]: empty }, { [as ?? field]: empty }), [])
      t.strictSame(differing(one, { [field]: 'other' }, {}), [field])
    }
})
t.test('forms: order of permissions, notation of selectors, generated handles', async (t) => {
  t.strictSame(differing('role', { permissions: ['b', 'a'] }, { permissions: ['a', 'b'] }), [])
  t.strictSame(
    differing(
      'toolkit',
      { actions: [{ action_name: 'x' }, { selector: 'y' }] },
      {
        actions: [
          { selector_type: 'exact', selector: 'x' },
          { selector_type: 'exact', selector: 'y' },
        ],
      },
    ),
    [],
  )
  const generated = { http_handle: 'trg_01KDVDNA003J2S13Z3EAKDPF1Y' }
  const own = { http_handle: 'mine' }
  const trigger = { kind: 'http', key: 'form' }
  t.strictSame(
    differing('loop', { triggers: [trigger] }, { triggers: [{ ...trigger, config: own }] }),
    [],
    'a trigger without a handle keeps the one that it has',
  )
  t.strictSame(
    differing('loop', { triggers: [trigger] }, { triggers: [{ ...trigger, config: generated }] }),
    [],
  )
  t.strictSame(
    differing(
      'loop',
      { triggers: [{ ...trigger, config: own }] },
      { triggers: [{ ...trigger, config: { http_handle: 'other' } }] },
    ),
    ['triggers'],
  )
})
t.test('secrets are neither shown nor forgotten', async (t) => {
  const wanted = { url: 'https://x.example/in?token=geheim' }
  const record = { name: 'n', url: 'https://x.example/in?token=***' }
  const hashes = appliedHashes('webhook', wanted, hash)
  t.strictSame(Object.keys(hashes), ['url', 'url!'])
  const known = bound(free('webhook', 'whk_1', record), 'a', { applied: hashes })
  t.strictSame(differencesOf('webhook', wanted, known, hash), [])
  t.strictSame(driftOf(known, hash), [])
  const changed = differencesOf(
    'webhook',
    { url: 'https://x.example/in?token=anders' },
    known,
    hash,
  )
  t.strictSame(changed, [{ field: 'url', from: record.url, to: record.url }])
  t.notMatch(JSON.stringify([hashes, changed]), /geheim|anders/)
  t.strictSame(
    differencesOf('webhook', wanted, free('webhook', 'whk_1', record), hash).map(
      ({ field }) => field,
    ),
    ['url'],
    'a secret that no apply has set is set',
  )
  t.strictSame(
    differencesOf('webhook', { url: record.url }, known, hash),
    [],
    'a masked value keeps what is stored',
  )

  const settings = { http_triggers: { form: { signing_secret: 'geheim geheim', other: 1 } } }
  const shown = { http_triggers: { form: { signing_secret: '[redacted]', other: 1 } } }
  const loop = bound(free('loop', 'loop_1', { settings: shown }), 'a', {
    applied: appliedHashes('loop', { settings }, hash),
  })
  t.strictSame(differencesOf('loop', { settings }, loop, hash), [])
  const other = { http_triggers: { form: { signing_secret: 'anders anders', other: 1 } } }
  t.strictSame(differencesOf('loop', { settings: other }, loop, hash), [
    { field: 'settings', from: shown, to: shown },
  ])
})
t.test('fields without a place in the record are kept with the binding', async (t) => {
  const known = bound(free('toolkit', 'kit_1', { name: 'n', actions: [] }), 'a', {
    kept: { metadata: { owner: 'desk' } },
  })
  t.strictSame(differencesOf('toolkit', { metadata: { owner: 'desk' } }, known, hash), [])
  t.strictSame(differencesOf('toolkit', { metadata: { owner: 'x' } }, known, hash), [
    { field: 'metadata', from: { owner: 'desk' }, to: { owner: 'x' } },
  ])
  t.strictSame(appliedHashes('toolkit', { metadata: { owner: 'x' } }, hash), {})
})
t.test('drift: applied fields with another present value', async (t) => {
  const wanted = { name: 'n', description: '', system_prompt: 'p', timeout_seconds: 0 }
  const applied = appliedHashes('agent', wanted, hash)
  const at = (record: object) =>
    driftOf(bound(free('agent', 'agt_1', { ...record }), 'a', { applied }), hash)
  t.strictSame(at({ name: 'n', system_prompt: 'p' }), [])
  t.strictSame(at({ name: 'n', system_prompt: 'p', model: 'x' }), [], 'a field not applied')
  t.strictSame(at({ name: 'm', description: 'd', system_prompt: 'p', timeout_seconds: 5 }), [
    { field: 'name', to: 'm' },
    { field: 'description', to: 'd' },
    { field: 'timeout_seconds', to: 5 },
  ])
  t.strictSame(at({ name: 'n' }), [{ field: 'system_prompt' }], 'a removed value')
  t.strictSame(driftOf(free('agent', 'agt_1', {}), hash), [])
  t.strictSame(
    driftOf(bound(free('agent', 'agt_1', {}), 'a', { applied: { retired: 'x' } }), hash),
    [],
    'a field that this release does not know',
  )
})
t.test('resolved references are no drift', async (t) => {
  const symbolic = appliedHashes('agent', { toolkits: ['=toolkit/t'], name: 'n' }, hash)
  const applied = withReferences(symbolic, { toolkits: ['kit_1'] }, hash)
  const known = bound(free('agent', 'agt_1', { name: 'n', toolkits: ['kit_1'] }), 'a', { applied })
  t.strictSame(driftOf(known, hash), [])
  t.strictSame(
    applied,
    appliedHashes('agent', { toolkits: ['kit_1'], name: 'n' }, hash),
    'as if the reference had not been symbolic',
  )
})
