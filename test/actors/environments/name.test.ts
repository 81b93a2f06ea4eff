/**
 * The actor of an environment's name, and the fields that gateways add to commands about names.
 */
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { environmentName } from '../../../actors/environments/name.ts'
import type { EnvironmentState } from '../../../actors/environments/state.ts'
import { refuse } from '../../../protocol/errors.ts'
import { given } from '../../support/given.ts'
import { actor, agent, created, ID, use } from './support.ts'

const free = () => given<object>(defineActor(environmentName))
const creation = (more: object = {}) => ({
  creation: { name: 'desk', provider: 'local', owned_by: 'user_1', ...more },
})
const self = { project: 'prj_1', kind: 'environment' as const, id: ID }

t.test('a name is taken once in the project and once by each owner', async (t) => {
  const taken = free().when('environment.create', creation())
  t.match(taken.reply, { name: 'desk', status: 'provisioning' })
  t.match(taken.when('environment.create', creation()).refused, { refused: 'already_exists' })
  const own = { scope: 'owner' }
  const owned = taken.when('environment.create', creation(own))
  t.equal(owned.refused, undefined)
  t.match(owned.when('environment.create', creation(own)).refused, { refused: 'already_exists' })
  const { id } = taken.reply as { id: string }
  const found = taken.when('environment.acquire_matching', creation())
  t.match(found.reply, { id, status_code: 200 })
  t.strictSame(found.events, [])
})

t.test('a name moves in two steps, and the former key is freed', async (t) => {
  const taken = free().when('environment.create', creation())
  const { id: environment_id } = taken.reply as { id: string }
  const key = 'owner/user_1'
  const both = taken.when('environment_name.take', { name: 'desk', key, environment_id })
  t.match(both.when('environment.create', creation()).refused, { refused: 'already_exists' })
  const moved = both.when('environment_name.keep', { environment_id, key })
  t.equal(moved.when('environment.create', creation()).refused, undefined)
  const other = { name: 'desk', key, environment_id: 'env_other' }
  t.match(moved.when('environment_name.take', other).refused, { refused: 'already_exists' })
  const gone = moved.when('environment_name.keep', { environment_id })
  t.strictSame(gone.state, { held: {} })
  t.strictSame(
    gone.when('environment_name.take', { name: 'desk', key, environment_id }).events,
    [],
    'a destroyed environment takes no name',
  )
})

t.test(
  'a reserved key is released by its request until the environment uses the key',
  async (t) => {
    const taken = free().when('environment.create', creation())
    const { id: environment_id } = taken.reply as { id: string }
    const key = 'owner/user_1'
    const reserve = (scene: typeof taken, reservation: string) =>
      scene.when('environment_name.take', { name: 'desk', key, environment_id, reservation })
    const release = (scene: typeof taken, reservation: string) =>
      scene.when('environment_name.release', { key, environment_id, reservation })
    const reserved = reserve(taken, 'cmd_1')
    t.strictSame(release(reserved, 'cmd_1').state, taken.state)
    const again = reserve(reserved, 'cmd_2')
    t.strictSame(release(again, 'cmd_1').events, [], 'another request has reserved it since')
    t.strictSame(release(again, 'cmd_2').state, taken.state)
    const used = again.when('environment_name.keep', { environment_id, key })
    t.strictSame(release(used, 'cmd_2').events, [], 'the environment uses it')
    t.strictSame(reserve(used, 'cmd_3').events, [])
  },
)

t.test('a command with a fault that the gateway found is refused and takes no name', async (t) => {
  const fault = refuse('not_found', { run_id: 'run_1' })
  for (const name of ['environment.create', 'environment.acquire_matching']) {
    const refused = free().when(name, { ...creation(), fault })
    t.strictSame(refused.refused, fault)
    t.strictSame(refused.state, { held: {} })
  }
})

t.test('the environment of an owner is bound once, and again after its destruction', async (t) => {
  const input = creation({ mode: 'run', run_id: 'run_1' })
  const bound = given<EnvironmentState>(actor).when('environment.bind', input, { self })
  t.match(bound.reply, { id: ID, name: `env-${ID.slice(4)}`, mode: 'run', lifetime: 'run' })
  t.match(bound.when('environment.bind', input, { self }).refused, { refused: 'already_exists' })
  const gone = bound.when('environment.delete', {}, { self })
  t.equal(gone.state?.record.status, 'destroyed')
  t.match(gone.when('environment.bind', input, { self }).reply, { status: 'provisioning' })
  const fault = refuse('conflict', { run_id: 'run_1' })
  t.strictSame(gone.when('environment.bind', { ...input, fault }, { self }).refused, fault)
})

t.test('a new environment whose use ends with its run notifies the run', async (t) => {
  const told = (environment_id: string) => [
    {
      tell: {
        to: { kind: 'run', id: 'run_1' },
        name: 'run.environment',
        input: { environment_id },
      },
    },
  ]
  const toRuns = ({ effects }: { readonly effects: readonly object[] }) =>
    effects.filter((effect) => 'tell' in effect)
  const ofRun = { mode: 'run', run_id: 'run_1' } as const
  const bind = (input: object) =>
    given<EnvironmentState>(actor).when('environment.bind', creation(input), { self })
  t.strictSame(toRuns(bind(ofRun)), told(ID))
  t.strictSame(toRuns(bind({ ...ofRun, lifetime: 'explicit' })), told(ID))
  t.strictSame(toRuns(bind({ mode: 'loop', loop_id: 'loop_1' })), [])
  t.strictSame(toRuns(created(ofRun)), told(ID), 'an environment with a name')
  t.strictSame(toRuns(created({ ...ofRun, lifetime: 'explicit' })), [])
  t.strictSame(toRuns(created()), [])
  const binding = { mode: 'run' as const, owner_id: 'run_1' }
  const used = use(created().when('environment.delete'), 'job_1', agent, { binding })
  t.match(used.state?.record, { run_id: 'run_1' })
  t.strictSame(toRuns(used), [], 'the run knows the environment that its job creates')
})

t.test('a change for an earlier record is refused', async (t) => {
  const scene = created()
  const as_of = scene.state?.record.updated_at
  const change = { scope: 'owner', as_of }
  t.equal(scene.when('environment.update', change, { self }).refused, undefined)
  const late = { ...change, as_of: '2020-01-01T00:00:00.000Z' }
  t.match(scene.when('environment.update', late, { self }).refused, {
    refused: 'conflict',
    details: { record: 'changed' },
  })
})
