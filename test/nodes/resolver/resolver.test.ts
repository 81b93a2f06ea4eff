/**
 * Calls to the resolver: at most one per agent at a time, across all nodes, and what each call
 * stores.
 */
import fc from 'fast-check'
import t from 'tap'
import type { ResolverQuestion } from '../../../gateway/ports.ts'
import type { CallResult } from '../../../nodes/resolver/call.ts'
import { createDefinitionResolver } from '../../../nodes/resolver/resolver.ts'
import { createDefinitionStore } from '../../../nodes/resolver/store.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import type { CalloutOutcome, KnownDefinition } from '../../../protocol/resolver/callout.ts'
import { type ResolverSettings, resolverDefaults } from '../../../protocol/resolver/schema.ts'
import { ManualClock, MemoryRegistry, settleAll, silentLog } from '../../support/memory.ts'

interface Call {
  readonly node: string
  readonly agent: string
  readonly digest: string | undefined
  readonly end: (outcome: CalloutOutcome) => void
}
/** Creates a factory of nodes that share one store. Calls stay pending until the test ends them. */
function stage() {
  const clock = new ManualClock()
  const registry = new MemoryRegistry()
  const calls: Call[] = []
  const measured: string[] = []
  let ids = 0
  const node = (name: string) =>
    createDefinitionResolver({
      store: createDefinitionStore(registry),
      call: ({ agent_id: agent }, _, digest) =>
        new Promise<CallResult>((done) => {
          calls.push({
            node: name,
            agent,
            digest,
            end: (outcome) => done({ outcome, label: outcome.kind }),
          })
        }),
      clock,
      mint: () => `call_${++ids}`,
      log: silentLog,
      measure: {
        resolverCalled: (outcome, ok) => void measured.push(`${outcome} ${ok}`),
        definitionServed: (use, age) => void measured.push(`${use} ${age}`),
        definitionFailed: (type) => void measured.push(type),
      },
    })
  return { clock, registry, calls, measured, node }
}
const asking = (
  settings: Partial<ResolverSettings> = {},
  agent_id = 'agt_1',
  updated_at = '2026-01-01T00:00:00.000Z',
): ResolverQuestion => ({
  configuration: {
    settings: {
      ...resolverDefaults,
      source: 'client_resolver',
      endpoint_url: 'https://resolver.example/',
      ...settings,
    },
    updated_at,
  },
  project: { id: 'prj_1' },
  agent_id,
  selector: `agent/${agent_id}`,
})
const bundle = (digest: string): CalloutOutcome => ({
  kind: 'bundle',
  digest,
  definition: { instructions: digest },
})
const down: CalloutOutcome = { kind: 'unreachable', reason: 'down' }

t.test('1,000 concurrent starts on two nodes make one call for each agent', async (t) => {
  const { clock, calls, node } = stage()
  const nodes = [node('a'), node('b')]
  const agents = ['agt_1', 'agt_2']
  const all = Array.from({ length: 1000 }, (_, index) =>
    nodes[index % 2]?.resolve(asking({}, agents[(index >> 1) % 2]), 'invoke'),
  )
  await clock.advance(1000)
  t.strictSame(calls.map(({ agent }) => agent).sort(), agents)
  for (const { agent, end } of calls) end(bundle(`of ${agent}`))
  await clock.advance(1000)
  const answers = (await Promise.all(all)) as KnownDefinition[]
  t.strictSame(new Set(answers.map(({ digest }) => digest)), new Set(['of agt_1', 'of agt_2']))
  t.equal(calls.length, 2)
})

t.test('the claim of a dead node whose clock was wrong delays no start', async (t) => {
  const { clock, registry, calls, node } = stage()
  const head = { claim: { id: 'x', configuration: '', until: clock.now() + 3_600_000 } }
  await createDefinitionStore(registry).putHead({ project: 'prj_1', agent_id: 'agt_1' }, head, 0)
  const answer = node('a').resolve(asking(), 'turn')
  await settleAll()
  t.equal(calls.length, 1)
  calls[0]?.end(bundle('new'))
  await clock.advance(500)
  t.match(await answer, { digest: 'new' })
})

t.test('the others share a failure too, each by its rules', async (t) => {
  const { clock, calls, node } = stage()
  const [a, b] = [node('a'), node('b')]
  const waiting = [a.resolve(asking(), 'turn'), b.resolve(asking(), 'turn')]
  await settleAll()
  calls[0]?.end(down)
  await clock.advance(500)
  for (const answer of await Promise.all(waiting))
    t.match(answer, { refused: 'definition_resolver_unavailable', details: { reason: 'down' } })
  t.equal(calls.length, 1)
  const unknown = [a.resolve(asking(), 'turn'), b.resolve(asking(), 'turn')]
  await settleAll()
  calls[1]?.end({ kind: 'unknown_agent' })
  await clock.advance(500)
  for (const answer of await Promise.all(unknown)) t.match(answer, { refused: 'unknown_agent' })
  t.equal(calls.length, 2)
})

t.test('the claim of a dead node ends, and its late answer changes nothing', async (t) => {
  const { clock, calls, node } = stage()
  const [a, b] = [node('a'), node('b')]
  const first = a.resolve(asking({ timeout_ms: 500 }), 'turn')
  await settleAll()
  const second = b.resolve(asking({ timeout_ms: 500 }), 'turn')
  await clock.advance(3000)
  t.equal(calls.length, 1, 'the call may still be in progress')
  await clock.advance(1000)
  t.equal(calls.length, 2)
  calls[1]?.end(bundle('new'))
  t.match(await second, { digest: 'new' })
  calls[0]?.end(bundle('old'))
  t.match(await first, { digest: 'old' }, 'its own caller gets it')
  const third = b.stored(asking())
  t.match(await third, { digest: 'new' })
  t.match(await node('c').stored(asking()), { digest: 'new' })
})

t.test('a call under another configuration is not shared', async (t) => {
  const { clock, calls, node } = stage()
  const a = node('a')
  const first = a.resolve(asking(), 'turn')
  await settleAll()
  const second = node('b').resolve(asking({}, 'agt_1', '2026-02-01T00:00:00.000Z'), 'turn')
  const third = a.resolve(asking({}, 'agt_1', '2026-02-01T00:00:00.000Z'), 'turn')
  await clock.advance(100)
  calls[0]?.end(bundle('old'))
  t.match(await first, { digest: 'old' })
  await clock.advance(500)
  t.equal(calls.length, 2, 'the two new callers share one')
  t.equal(calls[1]?.digest, 'old')
  calls[1]?.end(bundle('new'))
  await clock.advance(500)
  t.match(await second, { digest: 'new' })
  t.match(await third, { digest: 'new' })
})

t.test('an unchanged definition that is not stored is an invalid answer', async (t) => {
  const { calls, measured, node } = stage()
  const answer = node('a').resolve(asking(), 'turn')
  await settleAll()
  t.equal(calls[0]?.digest, undefined)
  calls[0]?.end({ kind: 'unchanged' })
  t.match(await answer, { refused: 'definition_resolver_unavailable' })
  t.strictSame(measured, ['definition_resolver_unavailable', 'invalid false'])
})

t.test('a definition that cannot be stored is used once, and delays no other start', async (t) => {
  const { clock, registry, calls, node } = stage()
  const put = registry.put.bind(registry)
  registry.put = async (key, value, revision) => {
    if (key.startsWith('value.')) throw new Error('too large')
    return put(key, value, revision)
  }
  const [a, b] = [node('a'), node('b')]
  const first = a.resolve(asking(), 'turn')
  await settleAll()
  const second = b.resolve(asking(), 'turn')
  await settleAll()
  calls[0]?.end(bundle('d1'))
  t.match(await first, { digest: 'd1' })
  await clock.advance(500)
  t.equal(calls.length, 2, 'it calls long before the end of the claim')
  calls[1]?.end(bundle('d2'))
  t.match(await second, { digest: 'd2' })
})

t.test('a claim whose answer was lost belongs to the same start', async (t) => {
  const { clock, registry, calls, node } = stage()
  const put = registry.put.bind(registry)
  let lost = false
  registry.put = async (key, value, revision) => {
    const stored = await put(key, value, revision)
    if (lost) return stored
    lost = true
    throw new Error('timeout')
  }
  const answer = node('a').resolve(asking(), 'turn')
  await clock.advance(500)
  t.equal(calls.length, 1)
  calls[0]?.end(bundle('d1'))
  t.match(await answer, { digest: 'd1' })
  t.match(await node('b').stored(asking()), { digest: 'd1' })
})

t.test(
  'the claim of a dead process whose clock was ahead delays no start for longer',
  async (t) => {
    const { clock, calls, node } = stage()
    clock.setBy(3_600_000)
    void node('a').resolve(asking(), 'turn')
    await settleAll()
    clock.setBy(-3_600_000)
    const answer = node('b').resolve(asking(), 'turn')
    await clock.advance(resolverDefaults.timeout_ms + 5000)
    t.equal(calls.length, 2)
    calls[1]?.end(bundle('d1'))
    t.match(await answer, { digest: 'd1' })
  },
)

t.test('a store that does not answer is no failure of the resolver', async (t) => {
  const { clock, registry, node } = stage()
  registry.get = async () => {
    throw new Error('no leader')
  }
  const answer = node('a').resolve(asking(), 'turn')
  await clock.advance(1000)
  t.match(await answer, { refused: 'service_unavailable' })
  t.match(await node('a').stored(asking()), { refused: 'service_unavailable' })
})

const outcomes = fc.oneof(
  fc.constantFrom('d1', 'd2').map(bundle),
  fc.constantFrom<CalloutOutcome>(
    { kind: 'unchanged' },
    { kind: 'unknown_agent' },
    { kind: 'missing' },
    { kind: 'error', code: 'busy' },
    { kind: 'invalid', reason: 'bad' },
    down,
  ),
)
const rules = fc.record({
  revalidate_after_s: fc.constantFrom(0, 5),
  stale_max_age_s: fc.constantFrom(0, 10),
  on_unavailable: fc.constantFrom('last_known_good' as const, 'fail' as const),
})
const steps = fc.array(
  fc.record({ node: fc.nat(2), wait: fc.constantFrom(0, 3000, 12_000), outcome: outcomes, rules }),
  { maxLength: 12 },
)
t.test('any sequence of outcomes, on any nodes, follows the model', async (t) => {
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      const { clock, calls, node } = stage()
      const nodes = ['a', 'b', 'c'].map(node)
      let known: { digest: string; at: number } | undefined
      for (const { node: index, wait, outcome, rules: rule } of sequence) {
        await clock.advance(wait)
        const made = calls.length
        const answering = nodes[index]?.resolve(asking(rule), 'turn')
        await settleAll()
        const now = clock.now()
        const fresh = known && now - known.at < rule.revalidate_after_s * 1000
        t.equal(calls.length - made, fresh ? 0 : 1)
        if (!fresh) {
          t.equal(calls.at(-1)?.digest, known?.digest)
          calls.at(-1)?.end(outcome)
        }
        const answer = await answering
        let expected: string | undefined
        if (fresh) expected = known?.digest
        else if (outcome.kind === 'bundle' || (outcome.kind === 'unchanged' && known)) {
          known = {
            digest: outcome.kind === 'bundle' ? outcome.digest : (known?.digest ?? ''),
            at: now,
          }
          expected = known.digest
        } else if (outcome.kind === 'unknown_agent') known = undefined
        else if (outcome.kind !== 'unchanged' && rule.on_unavailable === 'last_known_good')
          expected =
            known && (rule.stale_max_age_s === 0 || now - known.at <= rule.stale_max_age_s * 1000)
              ? known.digest
              : undefined
        t.equal(isRefusal(answer) ? undefined : answer?.digest, expected)
        if (isRefusal(answer))
          t.equal(
            answer.refused,
            outcome.kind === 'unknown_agent' ? 'unknown_agent' : 'definition_resolver_unavailable',
          )
      }
    }),
    { numRuns: 300 },
  )
})
