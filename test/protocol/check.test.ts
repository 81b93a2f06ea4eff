/** Checks of a workflow when it is saved, and the defaults of a start. */
import t from 'tap'
import { triggerSettingsFaults } from '../../protocol/loops/secrets.ts'
import { applyDefaults } from '../../protocol/rules/workflow-check/declared.ts'
import { checkSpec, type Spec, type Step } from '../../protocol/workflows/spec.ts'

const action = (parameters: Record<string, unknown> = {}, more: Partial<Step> = {}) =>
  ({ kind: 'action', config: { action_name: 'send', parameters }, ...more }) as Step
const wait = (config: object, more: Partial<Step> = {}) =>
  ({ kind: 'wait_for_event', config, ...more }) as Step
const sleep = (config: object) => ({ kind: 'sleep', config }) as Step
const faults = (steps: Step[], more: Partial<Spec> = {}) =>
  checkSpec({ steps, ...more }, 'spec').map(({ field, message }) => `${field}: ${message}`)

t.test('a valid workflow has no faults', async (t) => {
  t.same(
    faults(
      [
        action(
          {
            to: '${{ input.to }}',
            n: 3,
            deep: [{ text: 'run ${{ meta.run_id }} of ${{ event.to }} in ${{ config.region }}' }],
          },
          {
            id: 'send-mail',
            retry: { max_attempts: 3, delay: '1m30s' },
            timeout: { duration: '1h' },
          },
        ),
        sleep({ duration: '0' }),
        sleep({ until: '2030-01-31T12:00:00+02:00' }),
        wait(
          {
            event_type: 'signal.approved',
            match: { 'event.payload.id': '${{ steps["send-mail"].output.id }}', kind: ['a', 'b'] },
            payload_mapping: { by: 'event.payload.by', run: '${{ meta.run_id }}' },
          },
          { id: 'approval', if: '${{ steps[0].output.ok and steps["1"].output == {} }}' },
        ),
        action({ by: '${{ steps.approval.output.by }}' }),
      ],
      {
        output: { by: '${{ steps.approval.output.by }}', last: '${{ steps[4].output }}' },
        limits: { wall_clock_timeout: '24h' },
        input: { to: { type: 'string', required: true }, n: { type: 'integer', default: 1 } },
      },
    ),
    [],
  )
})

t.test('the name of an action has no templates', async (t) => {
  const templated = (more: Partial<Step> = {}) =>
    ({ kind: 'action', config: { action_name: 'crm.${{ event.op }}' }, ...more }) as Step
  const message = 'must be the name of an action, without templates'
  t.same(
    faults(
      [
        templated(),
        {
          kind: 'for_each',
          config: { items: [1], steps: [templated()] },
        } as Step,
        action(),
      ],
      { cleanup: [templated({ id: 'tidy' }) as never] },
    ),
    [
      `spec.steps[0].config.action_name: ${message}`,
      `spec.steps[1].config.steps[0].config.action_name: ${message}`,
      `spec.cleanup[0].config.action_name: ${message}`,
    ],
  )
})

t.test('ids are unique, including the default ids of steps', async (t) => {
  t.same(
    faults([action({}, { id: 'a' }), action(), ...[1, 2].map(() => action({}, { id: 'a' }))]),
    [
      'spec.steps[2].id: the id a is already that of step 0',
      'spec.steps[3].id: the id a is already that of step 0',
    ],
  )
})

t.test('a sleep needs exactly one valid end', async (t) => {
  t.same(
    faults([
      sleep({}),
      sleep({ duration: '1s', until: '2030-01-01T00:00:00Z' }),
      sleep({ duration: 'soon' }),
      sleep({ until: 'tomorrow' }),
      sleep({ duration: '999999999h' }),
    ]),
    [
      'spec.steps[0].config: give exactly one of duration and until',
      'spec.steps[1].config: give exactly one of duration and until',
      'spec.steps[2].config.duration: is not a duration; write for example 90s, 15m or 1h30m',
      'spec.steps[3].config.until: is not an RFC 3339 time such as 2030-01-31T12:00:00.000Z',
      'spec.steps[4].config.duration: is longer than ten years',
    ],
  )
  t.match(
    faults([action({}, { retry: { delay: 'x' }, timeout: { duration: '-1s' } })], {
      limits: { wall_clock_timeout: 'x' },
    }),
    [
      /^spec.steps\[0\].retry.delay: /,
      /^spec.steps\[0\].timeout.duration: /,
      /^spec.limits.wall_clock_timeout: /,
    ],
  )
})

t.test('a step can only read outputs of earlier steps', async (t) => {
  t.same(
    faults(
      [
        action(
          { a: '${{ steps.two.output }}', b: { c: '${{ steps.one.output }}' } },
          { id: 'one', if: 'steps[1].output.ok' },
        ),
        action(
          { a: ['${{ steps.none.output }}', '${{ steps["my-step"].output }}'] },
          { id: 'two' },
        ),
        action({ a: '${{ steps.my.step.output }}' }, { id: 'my-step', if: 'steps["a"' }),
      ],
      { output: { x: '${{ steps.two.output }}', y: '${{ steps[7].output }}' } },
    ),
    [
      'spec.steps[0].if: the step 1 comes later; only steps before this one have an output',
      'spec.steps[0].config.parameters.a: the step two comes later; ' +
        'only steps before this one have an output (at character 5)',
      'spec.steps[0].config.parameters.b.c: the step one cannot read its own output (at ' +
        'character 5)',
      'spec.steps[1].config.parameters.a[0]: there is no step none (at character 5)',
      'spec.steps[1].config.parameters.a[1]: the step my-step comes later; ' +
        'only steps before this one have an output (at character 5)',
      'spec.steps[2].if: Expected RBRACKET, got EOF (at character 10)',
      'spec.steps[2].config.parameters.a: there is no step my; ' +
        'an id that is not an identifier is read as steps["my-step"] (at character 5)',
      'spec.output.y: there is no step 7 (at character 5)',
    ],
  )
})

t.test('a wait names an event type or a pattern, and reads only the event', async (t) => {
  t.same(
    faults([
      wait({ event_type: 'schedule.tick' }),
      wait({ event_type: 'email.received' }),
      wait({ event_type: 'signal.' }),
      wait({ event_type: 'signal.*' }),
      wait({
        event_type: 'signal.go',
        match: { 'event..x': 1, 'event.y': '${{ foo }}' },
        payload_mapping: { ok: 'event.a', 'not ok': 'input.a', bad: '(' },
      }),
      wait({ event_type: 'table.row.*', condition: 'event.n > 1' }),
      wait({ event_type: '*' }),
      wait({ event_type: 'x.*.y', condition: 'input.n' }),
    ]),
    [
      'spec.steps[0].config.event_type: is an event that the service sends to itself; ' +
        'waits cannot use it',
      'spec.steps[2].config.event_type: is not the exact name of a signal, such as signal.approved',
      'spec.steps[3].config.event_type: is not the exact name of a signal, such as signal.approved',
      'spec.steps[4].config.match["event..x"]: is not a dotted path such as event.order.id',
      'spec.steps[4].config.match["event.y"]: there is no foo here; ' +
        'known: input, event, config, meta, run, steps (at character 5)',
      'spec.steps[4].config.payload_mapping["not ok"]: there is no input here; known: event, ' +
        'meta, run',
      'spec.steps[4].config.payload_mapping.bad: Unexpected token: EOF (at character 2)',
      'spec.steps[6].config.event_type: is not the type of an event, ' +
        'such as table.row.inserted or table.row.*, of at most 128 characters',
      'spec.steps[7].config.event_type: is not the type of an event, ' +
        'such as table.row.inserted or table.row.*, of at most 128 characters',
      'spec.steps[7].config.condition: there is no input here; known: event, meta',
    ],
  )
})

t.test('names with line breaks are refused, because no schema checks their values', async (t) => {
  const strange = { 'a\nb': 5, 'c\u2028': null } as unknown as NonNullable<Spec['input']>
  const fault = (at: string) => [
    `${at}["a\\nb"]: must not have a line break in its name`,
    `${at}["c\u2028"]: must not have a line break in its name`,
  ]
  t.same(faults([sleep({ duration: '1s' })], { input: strange }), fault('spec.input'))
  t.same(faults([sleep({ duration: '1s' })], { config: strange }), fault('spec.config'))
  t.same(
    faults([wait({ event_type: 'signal.go', payload_mapping: strange })]),
    fault('spec.steps[0].config.payload_mapping'),
  )
})

t.test('the depth and size of documents and the number of faults are limited', async (t) => {
  const deep = JSON.parse(`${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`) as Record<string, unknown>
  t.match(faults([action(deep)]), [
    /^spec\.steps\[0\]\.config\.parameters\.a\.a.*: is nested deeper than 48 levels$/,
  ])
  t.same(faults([action({ list: Array(30_000).fill(0) })]), ['spec: has more than 20000 values'])
  const texts = (count: number) => ({ text: '${{ 1 }}'.repeat(count), list: ['${{ 1 }}'] })
  t.same(faults([action(texts(3999))]), [])
  t.same(faults([action(texts(4000))]), ['spec: has more than 4000 interpolations'])
  t.equal(faults(Array.from({ length: 200 }, () => sleep({}))).length, 50)
})

t.test('a start gets defaults and is checked against the declared types', async (t) => {
  const declared = {
    name: { type: 'string', required: true },
    n: { type: 'integer', default: 3 },
    list: { type: 'array' },
    at: { type: 'date' },
    flag: { type: 'boolean', required: true, default: false },
  }
  t.strictSame(applyDefaults(declared, { name: 'x', other: 1 }, 'input'), {
    values: { name: 'x', other: 1, n: 3, flag: false },
  })
  t.strictSame(
    applyDefaults(declared, { name: '', n: 0, list: null, at: 7, flag: true }, 'input'),
    { values: { name: '', n: 0, list: null, at: 7, flag: true } },
  )
  t.same(applyDefaults(declared, { n: 1.5, list: {}, flag: null }, 'input'), {
    faults: [
      { field: 'input.name', message: 'is required' },
      {
        field: 'input.n',
        message: 'must be of type integer, not number',
        expected: 'integer',
        actual: 1.5,
      },
      {
        field: 'input.list',
        message: 'must be of type array, not object',
        expected: 'array',
        actual: {},
      },
      { field: 'input.flag', message: 'is required' },
    ],
  })
  t.same(applyDefaults(undefined, undefined, 'config'), { values: {} })
  t.same(applyDefaults({ x: { required: true } }, undefined, 'config'), {
    faults: [{ field: 'config.x', message: 'is required' }],
  })
  t.strictSame(
    applyDefaults(JSON.parse('{"__proto__": {"default": {"polluted": true}}}'), {}, 'input'),
    { values: JSON.parse('{"__proto__": {"polluted": true}}') },
  )
  t.same(faults([action()], { input: { n: { type: 'integer', default: 'three' } } }), [
    'spec.input.n.default: must be of type integer, not text',
  ])
})

t.test('actions without an environment of their own follow the policy', async (t) => {
  const bash = (config: object = {}) =>
    ({ kind: 'action', config: { action_name: 'environment.bash', ...config } }) as Step
  const under = (environment: NonNullable<Spec['defaults']>['environment'], steps = [bash()]) =>
    faults(steps, { defaults: { ...(environment && { environment }) } })
  const at = 'spec.steps[0].config'
  t.same(under(undefined), [], 'the run has an environment')
  t.same(under({ mode: 'run', provider: 'docker' }), [])
  t.same(under({ disabled: true }), [
    `${at}.environment_id: is required: defaults.environment is disabled`,
  ])
  t.same(under({ disabled: true }, [bash({ environment_id: 'env_1' })]), [])
  t.same(under({ disabled: true }, [action()]), [], 'other actions need none')
  const each = { kind: 'for_each', config: { items: [1], steps: [bash()] } } as Step
  t.same(under({ disabled: true }, [each]), [
    `${at}.steps[0].config.environment_id: is required: defaults.environment is disabled`,
  ])
  t.same(under({ mode: 'manual' }), [
    'spec.defaults.environment.environment_id: is required by the mode manual',
  ])
  t.same(under({ mode: 'manual', environment_id: 'env_1' }), [])
  t.same(under({ mode: 'loop' }), ['spec.defaults.environment.mode: is allowed only for loops'])
  t.same(under({ mode: 'agent' }), [
    'spec.defaults.environment.mode: requires a loop whose agent_id contains the id of an agent',
  ])
  t.same(under({ mode: 'agent' }, [action()]), [], 'agent steps have agents of their own')
  const of = (agent_id: string) =>
    checkSpec({ steps: [bash()], defaults: { environment: { mode: 'agent' } } }, '', 'event', {
      agent_id,
      prepares: [],
    }).length
  t.equal(of('agt_01ARZ3NDEKTSV4RRFFQ69G5FAV'), 0)
  t.equal(of('coder'), 1, 'the name of an agent does not identify its environment')
})

t.test('the service itself performs no action in an environment', async (t) => {
  const managed = (config: object) =>
    faults([{ kind: 'action', config: { execution_location: 'managed', ...config } } as Step])
  t.same(managed({ action_name: 'send' }), [])
  t.same(managed({ action_name: 'send', environment_id: 'env_1' }), [
    'spec.steps[0].config.environment_id: is not allowed for actions that the service executes',
  ])
  t.match(
    managed({ action_name: 'environment.bash' })[0],
    /execution_location: must be environment/,
  )
  t.same(
    faults([
      {
        kind: 'action',
        config: { action_name: 'send', execution_location: 'environment' },
      } as Step,
    ]),
    [],
    'an id is not required',
  )
})

t.test('settings of a trigger without effect may remain, but not be added', (t) => {
  const triggers = [{ kind: 'http' as const, key: 'a' }]
  const settings = (a: unknown) => ({ http_triggers: { a } })
  const fields = (after: unknown, before: unknown) =>
    triggerSettingsFaults(triggers, settings(after), {
      triggers,
      settings: settings(before),
      placeholders: [],
    }).map(({ field }) => field)
  const signing_secret = 'a secret of it'
  t.same(fields('text', 'text'), [])
  t.same(fields('other', 'text'), ['settings.http_triggers.a'])
  t.same(fields({ signing_secret, secrte: { of: [1] } }, { secrte: { of: [1] } }), [])
  t.same(fields({ secrte: 'new' }, { secrte: 'old' }), ['settings.http_triggers.a.secrte'])
  t.same(fields({ constructor: 1 }, {}), ['settings.http_triggers.a.constructor'])
  t.end()
})
