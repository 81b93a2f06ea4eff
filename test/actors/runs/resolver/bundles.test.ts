/** The definition that a run keeps for an agent, and the data that the resolver receives. */
import t from 'tap'
import { run } from '../../../../actors/runs/run.ts'
import type { RunState } from '../../../../actors/runs/state.ts'
import type { TurnWanted } from '../../../../protocol/runs/turns.ts'
import type { Step } from '../../../../protocol/workflows/spec.ts'
import { given, type Scene } from '../../../support/given.ts'
import { definition } from '../../sessions/story.ts'
import { record, started } from '../story.ts'

const ask = (id: string, agent_id = 'helper') =>
  ({ id, kind: 'agent', config: { agent_id, instructions: 'Work' } }) as Step
const bundle = (digest: string, agent_id = 'agt_1') => ({
  agent_id,
  agent_name: 'helper',
  digest,
  definition: { instructions: digest },
})
const define = (scene: Scene<RunState>, turn_id: string, kept?: object) =>
  scene.when('turn.defined', {
    turn_id,
    session_id: 'ses_1',
    definition: definition(),
    place: {
      root: 'ses_1',
      generation: 0,
      session_key: 'k',
      agent_id: 'agt_1',
      agent_name: 'helper',
    },
    seed: {},
    ...(kept && { bundle: kept }),
  })
const settle = (scene: Scene<RunState>, turn_id: string) =>
  scene.when('turn.settled', { turn_id, session_id: 'ses_1', status: 'completed', text: 'done' })
const wanted = (scene: Scene<RunState>, job_id: string) =>
  scene.ask('job_spec', { job_id }) as TurnWanted

t.test('the run keeps the definition of the first turn for later turns', async (t) => {
  const first = define(started([ask('a'), ask('b'), ask('c', 'other')]), 'turn_1', bundle('d1'))
  const opened = first.events.find(({ type }) => type === 'turn.opened')
  t.match(opened?.['private'], { bundle: bundle('d1') })
  t.notOk(JSON.stringify(opened?.['payload']).includes('d1'), 'the timeline does not show it')
  t.notOk(JSON.stringify(first.effects).includes('"bundle"'), 'the session has no need of it')
  const second = settle(first, 'turn_1')
  t.match(wanted(second, 'job_2'), { agent: 'helper', bundle: bundle('d1') })
  const reopened = define(second, 'turn_2')
  t.notOk(JSON.stringify(reopened.events).includes('"d1"'), 'later events do not repeat it')
  const third = settle(reopened, 'turn_2')
  t.equal(wanted(third, 'job_3').bundle, undefined, 'another agent has none yet')
  const all = define(third, 'turn_3', bundle('d2', 'agt_2'))
  t.strictSame(Object.keys(all.state.bundles ?? {}), ['agt_1', 'agt_2'])
  t.match(record(settle(all, 'turn_3')), { status: 'completed' })
})

t.test('an agent may be named by its id', async (t) => {
  const first = define(started([ask('a'), ask('b', 'agt_1')]), 'turn_1', bundle('d1'))
  t.match(wanted(settle(first, 'turn_1'), 'job_2'), { bundle: bundle('d1') })
})

t.test('of two lookups at once, the run keeps the first one', async (t) => {
  const branches = {
    id: 'p',
    kind: 'parallel',
    config: {
      branches: [
        { id: 'x', steps: [ask('a')] },
        { id: 'y', steps: [ask('b')] },
      ],
    },
  } as unknown as Step
  const both = started([branches])
  t.equal(wanted(both, 'job_1').bundle, undefined)
  t.equal(wanted(both, 'job_2').bundle, undefined)
  const first = define(both, 'turn_1', bundle('d1'))
  const other = define(first, 'turn_2', bundle('d2'))
  t.match(other.refused, { refused: 'conflict' })
  t.match(wanted(first, 'job_2'), { bundle: bundle('d1') }, 'the repeated lookup has it')
  const same = define(first, 'turn_2', bundle('d1'))
  t.equal(same.refused, undefined)
  t.notOk(JSON.stringify(same.events).includes('"d1"'))
})

t.test('the resolver receives the source of the run', async (t) => {
  const opened = (more: object) =>
    given<RunState>(run).when('run.open', {
      loop: { id: 'loop_1', version_id: 'lver_1', version: 3, name: 'Nightly' },
      spec: { steps: [ask('a')] },
      definitions: {},
      event: {},
      config: {},
      meta: {},
      source: { type: 'api' },
      depth: 0,
      ...more,
    })
  const byTrigger = (event_type: string) =>
    opened({ source: { type: 'trigger', trigger_id: 'trg_1' }, meta: { event_type } })
  for (const [scene, kind] of [
    [started([ask('a')]), 'api'],
    [opened({}), 'api'],
    [opened({ source: { type: 'manual' } }), 'manual'],
    [opened({ source: { type: 'signal' } }), 'signal'],
    [opened({ source: {} }), 'api'],
    [byTrigger('schedule.tick'), 'schedule'],
    [byTrigger('http_trigger.received'), 'http'],
    [byTrigger('signal.go'), 'signal'],
    [byTrigger('order.paid'), 'event'],
    [opened({ parent: { run_id: 'run_9', step: 's' }, depth: 1 }), 'loop'],
  ] as const)
    t.equal(wanted(scene, 'job_1').trigger, kind)
})
