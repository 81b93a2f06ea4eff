/** Random workflow specs for the property test of runs. */
import * as fc from 'fast-check'
import type { Spec } from '../../../../protocol/workflows/spec.ts'

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const duration = fc.constantFrom('0s', '5s', '30s')
const kinds = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .constantFrom(
        { action_name: 'x' },
        { action_name: 'y', parameters: { n: '${{ input.n }}', bad: '${{ input.bad - 1 }}' } },
      )
      .map((config) => ({ kind: 'action' as const, config })),
  },
  {
    weight: 2,
    arbitrary: duration.map((duration) => ({ kind: 'sleep' as const, config: { duration } })),
  },
  {
    weight: 3,
    arbitrary: fc
      .record(
        {
          event_type: fc.constantFrom('signal.a', 'signal.b', 'order.paid'),
          match: maybe(fc.constant({ n: 1 })),
          payload_mapping: maybe(fc.constant({ m: 'event.n - 1' })),
        },
        { requiredKeys: ['event_type'] },
      )
      .map((config) => ({ kind: 'wait_for_event' as const, config })),
  },
  {
    weight: 2,
    arbitrary: fc
      .record({
        targets: fc.constantFrom(['ada'], ['ada', '${{ input.bad }}']),
        expires_in: maybe(fc.constant('20s')),
        on_expiry: maybe(fc.constant('continue' as const)),
      })
      .map((config) => ({
        kind: 'interaction' as const,
        config: { protocol: 'request_approval' as const, ...config },
      })),
  },
)
/** Step kinds that contain no other steps. */
const plain = fc.oneof(
  { weight: 6, arbitrary: kinds },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.constantFrom('input.n == 1', '[1] - 1 > 0'),
        fc.constantFrom('fail' as const, 'continue' as const, 'gate' as const),
      )
      .map(([expr, on_fail]) => ({
        kind: 'check' as const,
        config: {
          checks: [{ name: 'c', kind: 'expr' as const, expr }],
          on_fail,
          ...(on_fail === 'gate' && { gate: { targets: ['ada'] } }),
        },
      })),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom('Say ${{ input.n }}', '${{ input.bad - 1 }}')
      .map((instructions) => ({
        kind: 'agent' as const,
        config: { agent_id: 'helper', instructions },
      })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('fail' as const, 'continue' as const).map((on_fail) => ({
      kind: 'check' as const,
      config: {
        on_fail,
        checks: [
          { name: 'x', kind: 'agent' as const, prompt: 'Is it so?' },
          { name: 'c', kind: 'expr' as const, expr: 'input.n == 1' },
          { name: 'y', kind: 'agent' as const, prompt: 'And ${{ input.bad - 1 }}?' },
        ],
      },
    })),
  },
  {
    weight: 1,
    arbitrary: fc
      .record({ wait: fc.boolean(), workflow_id: fc.constantFrom('child', 'child', 'none') })
      .map((config) => ({ kind: 'loop' as const, config })),
  },
)
const inner = fc.record({
  steps: fc.array(
    fc
      .tuple(
        plain,
        maybe(fc.record({ max_attempts: fc.integer({ min: 1, max: 2 }), delay: duration })),
      )
      .map(([kind, retry]) => ({ ...kind, retry })),
    { minLength: 1, maxLength: 2 },
  ),
  output: maybe(fc.constantFrom({ n: '${{ input.n }}' }, { n: '${{ input.bad - 1 }}' })),
})
const joining = fc.record({
  join: maybe(fc.constantFrom('all' as const, 'any' as const, 'first_failure' as const)),
  on_failure: maybe(fc.constant('continue' as const)),
})
const any = fc.oneof(
  { weight: 5, arbitrary: plain },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.array(inner, { minLength: 1, maxLength: 3 }), joining)
      .map(([bodies, join]) => ({
        kind: 'parallel' as const,
        config: { branches: bodies.map((body, i) => ({ id: `b${i}`, ...body })), ...join },
      })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        inner,
        joining,
        fc.constantFrom('[1, 2, 3, 4]', '[]', 'input.bad'),
        fc.integer({ min: 1, max: 3 }),
      )
      .map(([body, join, items, max_concurrency]) => ({
        kind: 'for_each' as const,
        config: { items, max_concurrency, ...body, ...join },
      })),
  },
)
const steps = fc.array(
  fc.tuple(
    any,
    maybe(fc.constantFrom('input.n == 1', 'input.n != 1', '[1] - 1 > 0')),
    maybe(fc.record({ max_attempts: fc.integer({ min: 1, max: 3 }), delay: duration })),
    maybe(duration),
  ),
  { minLength: 1, maxLength: 5 },
)
/** A random valid spec, in the form that clients send. */
export const spec = fc
  .tuple(
    steps,
    maybe(fc.constantFrom('1m', '10m')),
    maybe(fc.constant([{ kind: 'action', config: { action_name: 'tidy' } }])),
  )
  .map(([parts, wall, cleanup]) => {
    const list = parts.map(([kind, condition, retry, timeout], i) => ({
      ...kind,
      ...(i % 2 === 0 && { id: `s${i}` }),
      if: condition,
      retry,
      timeout: timeout && { duration: timeout, ...(i === 1 && { on_timeout: 'continue' }) },
    }))
    return JSON.parse(
      JSON.stringify({ steps: list, cleanup, limits: wall && { wall_clock_timeout: wall } }),
    ) as Spec
  })
