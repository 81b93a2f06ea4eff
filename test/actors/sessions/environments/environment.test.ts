/** The environments to which the jobs of a session are pinned. */
import t from 'tap'
import type { JobHeader } from '../../../../protocol/jobs/rows.ts'
import type { TurnEnvironment } from '../../../../protocol/sessions/turns/definition.ts'
import { begun, definition, type Story, say, tool, use } from '../story.ts'

const AGENT = 'agt_1'
const environmentId = (letter: string): string => `env_01${letter.repeat(24)}`
const OTHER = environmentId('B')
const OWN: TurnEnvironment = {
  id: environmentId('A'),
  use: {
    holder: { kind: 'agent', id: AGENT },
    binding: { mode: 'agent', owner_id: AGENT, owned_by: 'agt_1' },
  },
}
const bash = tool('environment.bash', {}, { environment_id: OWN.id })
const withBash = (environment: TurnEnvironment = OWN) =>
  definition([{ ...bash, environment_id: environment.id }, tool('crm.find')], { environment })
const route = (environment_id: string) =>
  ({ mode: 'worker', provider: 'local', model: 'm', environment_id }) as const
const systemOf = (s: Story, job: JobHeader): string =>
  JSON.stringify((s.spec(job)['request'] as { system?: unknown }).system)

t.test('a call of an environment tool is pinned to the environment of the turn', async (t) => {
  const s = begun('go', {}, withBash())
  s.answers(use('1', 'environment_bash', { command: 'ls' }), use('2', 'crm_find'))
  const [first, second] = [...s.jobs.values()]
  t.match(first, { action_name: 'environment.bash', environment_id: OWN.id })
  t.strictSame(first?.environment, OWN.use, 'the first use creates the environment')
  t.notOk(second?.environment_id ?? second?.environment, 'other tools are not')
})

t.test('in a turn of a run, the jobs have the environment that the run selected', async (t) => {
  const use_ = { holder: { kind: 'run', id: 'run_1' }, passive: true } as const
  const s = begun('go', {}, withBash({ id: OTHER, use: use_ }))
  s.answers(use('1', 'environment_bash'))
  const job = s.job('action_execution')
  t.equal(job.environment_id, OTHER)
  t.strictSame(job.environment, use_)
})

t.test('the system prompt mentions the workspace if tools use an environment', async (t) => {
  const s = begun('go', {}, withBash())
  t.match(systemOf(s, s.job()), /You have a workspace/)
  const without = begun('go', {}, definition([tool('crm.find')]))
  t.notMatch(systemOf(without, without.job()), /workspace/)
})

t.test('a generation in an environment of the service waits for its admission', async (t) => {
  const other = begun('go', {}, definition([], { route: route(OTHER) }))
  t.strictSame(other.job().environment, { holder: { kind: 'agent', id: AGENT } })
  const own = begun('go', {}, definition([bash], { environment: OWN, route: route(OWN.id) }))
  t.strictSame(own.job().environment, OWN.use, 'that of the tools is created by it')
  const label = begun('go', {}, definition([], { route: route('gpu-box') }))
  t.match(label.job(), { environment_id: 'gpu-box' })
  t.notOk(label.job().environment, 'a label of a worker is not an environment of the service')
})

t.test('the generation of a summary also waits for the admission', async (t) => {
  const use_ = definition([], { route: route(OTHER) })
  const s = begun('go', {}, use_)
  s.answers(say('done'))
  t.equal(s.do('session.compact', { session_id: 'ses_1', definition: use_ }), undefined)
  t.match(s.job(), { environment_id: OTHER, environment: { holder: { id: AGENT } } })
})
