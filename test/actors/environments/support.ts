/** Helpers that create environments in the states from which tests start. */
import { defineActor } from '../../../actors/actor.ts'
import { newEnvironment } from '../../../actors/environments/creation.ts'
import { defaultEnvironmentSettings } from '../../../actors/environments/draft.ts'
import { environmentActor } from '../../../actors/environments/environment.ts'
import type { EnvironmentState } from '../../../actors/environments/state.ts'
import type { CreateEnvironment, Holder } from '../../../protocol/environments/schema.ts'
import { given, type Outcome, type Scene, START } from '../../support/given.ts'

export const settings = defaultEnvironmentSettings
export const actor = defineActor(environmentActor({ environments: settings }))
export const ID = 'env_00000000000000000000000000'
const self = { project: 'prj_1', kind: 'environment' as const, id: ID }
export const agent: Holder = { kind: 'agent', id: 'agt_1' }
export const other: Holder = { kind: 'principal', id: 'user_2' }
export const PLACE = 'local/1'

export type Environments = Scene<EnvironmentState>
export type Decided = Outcome<EnvironmentState>
export const secondsLater = (seconds: number) => ({ at: START + seconds * 1000 })

export const created = (input: CreateEnvironment = {}): Decided =>
  given<EnvironmentState>(actor).when(
    'environment.open',
    {
      environment: newEnvironment(ID, { provider: 'local', ...input }, START),
      origin: { holder: 'evn_1' },
    },
    { self },
  )
export const claim = (scene: Environments, host = 'h1', place = PLACE): Decided =>
  scene.when('environment.claim', {
    operation: scene.state?.operation?.number ?? 0,
    host,
    place,
    token_hash: 'hash',
  })
export const report = (scene: Environments, outcome: 'done' | 'failed' = 'done'): Decided =>
  scene.when('environment.report', {
    operation: scene.state?.operation?.number ?? 0,
    host: scene.state?.operation?.host ?? 'h1',
    outcome,
    ...(outcome === 'failed' && { error: 'The disk is full.' }),
  })
export const ready = (input?: CreateEnvironment): Decided => report(claim(created(input)))
export const use = (
  scene: Environments,
  job_id: string,
  holder: Holder = agent,
  more: object = {},
): Decided => scene.when('environment.use', { job_id, queue: '0.default', holder, ...more })
export const connect = (scene: Environments, session = 'wst_1'): Decided => {
  const worker = { instance: 'worker-1', generation: scene.state?.worker.generation ?? 0 }
  return scene
    .when('environment.connect', worker)
    .when('environment.connected', { ...worker, session })
}
export const working = (job_id = 'job_1'): Decided => connect(report(claim(use(ready(), job_id))))
export const done = (scene: Environments, job_id: string): Decided =>
  scene.when('environment.done', { job_id })

/** Returns the job ids that a decision sends in tells with this name. */
export const asked = ({ effects }: Decided, name: string): string[] =>
  effects.flatMap((effect) =>
    'tell' in effect && effect.tell.name === name
      ? (effect.tell.input as { readonly job_ids: string[] }).job_ids
      : [],
  )
/** Returns the operations that a decision requested from hosts, each as `kind number`. */
export const requests = ({ effects }: Decided): string[] =>
  effects.flatMap((effect) =>
    'host' in effect ? [`${effect.host.request.kind} ${effect.host.request.operation}`] : [],
  )
