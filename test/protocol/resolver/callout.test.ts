/** The protocol of a call to a resolver, and how the result of the call is used. */
import fc from 'fast-check'
import t from 'tap'
import {
  type CalloutOutcome,
  entryOf,
  isFresh,
  type KnownDefinition,
  requestOf,
  resolutionOf,
  selectorOf,
} from '../../../protocol/resolver/callout.ts'

const SELECTOR = 'agent/helper'
const answer = (entry: unknown) => ({ protocol_version: 1, resolved: { [SELECTOR]: entry } })
const entry = (value: unknown) => entryOf(answer(value), SELECTOR)

t.test('the request is the one of the contract', async (t) => {
  t.equal(selectorOf({ name: 'helper' }), SELECTOR)
  t.equal(selectorOf({ name: 'helper', external_ref: 'h-7' }), 'agent/h-7')
  t.strictSame(
    requestOf({
      org_id: 'org_1',
      project: { id: 'prj_1', external_ref: 'tenant-9' },
      trigger: 'schedule',
      selector: SELECTOR,
      known_digest: 'd41',
    }),
    {
      protocol_version: 1,
      org_id: 'org_1',
      project: { id: 'prj_1', external_ref: 'tenant-9' },
      trigger: { kind: 'schedule' },
      refs: [{ selector: SELECTOR, known_digest: 'd41' }],
    },
  )
  t.strictSame(requestOf({ org_id: 'o', project: { id: 'p' }, trigger: 'turn', selector: 's' }), {
    protocol_version: 1,
    org_id: 'o',
    project: { id: 'p' },
    trigger: { kind: 'turn' },
    refs: [{ selector: 's' }],
  })
})

t.test('an entry is a definition, with the known fields only', async (t) => {
  t.strictSame(
    entry({
      digest: 'e52',
      value: {
        agent: {
          instructions: 'Answer briefly.',
          model: 'm-1',
          effort: 'low',
          timeout_seconds: 60,
          memory_context: { mode: 'full', max_bytes: 10, later: 1 },
          colour: 'red',
        },
        toolkits: [{ name: 'crm', actions: ['crm.find'], later: true }, { name: 'all' }],
        skills: [{ name: 's', description: 'd', body: 'b', later: 1 }],
        later: {},
      },
    }),
    {
      kind: 'bundle',
      digest: 'e52',
      definition: {
        instructions: 'Answer briefly.',
        model: 'm-1',
        effort: 'low',
        timeout_seconds: 60,
        memory_context: { mode: 'full', max_bytes: 10 },
        toolkits: [{ name: 'crm', actions: ['crm.find'] }, { name: 'all' }],
        skills: [{ name: 's', description: 'd', body: 'b' }],
      },
    },
  )
  t.strictSame(entry({ digest: 'd', value: {} }), { kind: 'bundle', digest: 'd', definition: {} })
})

t.test('the other entries', async (t) => {
  t.strictSame(entry({ unchanged: true }), { kind: 'unchanged' })
  t.strictSame(entry({ error: 'unknown_agent' }), { kind: 'unknown_agent' })
  t.strictSame(entry({ error: { code: 'unknown_agent', message: 'no' } }), {
    kind: 'unknown_agent',
  })
  t.strictSame(entry({ error: 'busy' }), { kind: 'error', code: 'busy' })
  t.strictSame(entryOf({ protocol_version: 1, resolved: {} }, SELECTOR), { kind: 'missing' })
  t.strictSame(
    entryOf({ protocol_version: 1, resolved: {} }, 'constructor'),
    { kind: 'missing' },
    'a name of a prototype is no entry',
  )
})

t.test('everything else is invalid', async (t) => {
  for (const body of [
    null,
    [],
    'text',
    {},
    { resolved: {} },
    { protocol_version: 2, resolved: {} },
    { protocol_version: 1, resolved: [] },
    answer('text'),
    answer({}),
    answer({ value: {} }),
    answer({ digest: '', value: {} }),
    answer({ digest: 7, value: {} }),
    answer({ digest: 'x'.repeat(257), value: {} }),
    answer({ digest: 'd' }),
    answer({ digest: 'd', value: [] }),
    answer({ digest: 'd', value: { agent: { effort: 'huge' } } }),
    answer({ digest: 'd', value: { agent: { timeout_seconds: -1 } } }),
    answer({ digest: 'd', value: { toolkits: [{ actions: [] }] } }),
    answer({ digest: 'd', value: { skills: [{ name: 's', body: '' }] } }),
    answer({ unchanged: false }),
    answer({ error: {} }),
    answer({ error: 5 }),
  ])
    t.match(entryOf(body, SELECTOR), { kind: 'invalid' }, JSON.stringify(body))
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (body, value) => {
      for (const found of [entryOf(body, SELECTOR), entry(value)]) t.type(found.kind, 'string')
    }),
  )
})

const rules = fc.record({
  revalidate_after_s: fc.nat(100),
  stale_max_age_s: fc.nat(100),
  on_unavailable: fc.constantFrom('last_known_good' as const, 'fail' as const),
})
const NOW = 1_000_000
const known: fc.Arbitrary<KnownDefinition | undefined> = fc.option(
  fc.record({
    digest: fc.string(),
    definition: fc.constant({ instructions: 'stored' }),
    at: fc.integer({ min: NOW - 200_000, max: NOW }),
  }),
  { nil: undefined },
)
const unavailable: fc.Arbitrary<CalloutOutcome> = fc.constantFrom(
  { kind: 'unreachable', reason: 'x' },
  { kind: 'invalid', reason: 'x' },
  { kind: 'missing' },
  { kind: 'error', code: 'busy' },
)

t.test('without an answer: the last known definition within its age, or a failure', async (t) => {
  fc.assert(
    fc.property(rules, known, unavailable, (rule, stored, outcome) => {
      const found = resolutionOf(rule, stored, outcome, NOW)
      const age = stored && (NOW - stored.at) / 1000
      const usable =
        rule.on_unavailable === 'last_known_good' &&
        age !== undefined &&
        (rule.stale_max_age_s === 0 || age <= rule.stale_max_age_s)
      if (usable) t.strictSame(found, { use: stored, stale: true })
      else t.match(found, { fail: 'definition_resolver_unavailable' })
    }),
  )
})

t.test('with an answer, the rules for unavailability and the age do not matter', async (t) => {
  const definition = { instructions: 'new' }
  fc.assert(
    fc.property(rules, known, (rule, stored) => {
      t.strictSame(resolutionOf(rule, stored, { kind: 'bundle', digest: 'n', definition }, NOW), {
        use: { digest: 'n', definition, at: NOW },
      })
      t.match(resolutionOf(rule, stored, { kind: 'unknown_agent' }, NOW), {
        fail: 'unknown_agent',
      })
      const same = resolutionOf(rule, stored, { kind: 'unchanged' }, NOW)
      if (stored) t.strictSame(same, { use: { ...stored, at: NOW } })
      else t.match(same, { fail: 'definition_resolver_unavailable' })
    }),
  )
})

t.test('a definition is fresh for the configured time', async (t) => {
  fc.assert(
    fc.property(rules, known, (rule, stored) => {
      const fresh = stored !== undefined && NOW - stored.at < rule.revalidate_after_s * 1000
      t.equal(isFresh(rule, stored, NOW), fresh)
    }),
  )
})
