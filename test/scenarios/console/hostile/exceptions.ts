/**
 * Lists the fields for which the service refuses every hostile value, and fills those that accept
 * one only together with certain other fields. A new field that accepts hostile values needs no
 * entry here.
 */
import type { RowName } from '../../../../protocol/api.ts'
import type { Place } from '../../../hostile/support/rows.ts'
import type { Service } from '../../../support/service.ts'
import { hostileJson, hostileText } from './texts.ts'

/**
 * Names of fields for which the service refuses every hostile value, by reason. The names are
 * separated by white space.
 */
const closedNames: Readonly<Record<string, string>> = {
  'names something that exists': `action_name after agent agent_id app_id definition_id
    environment_id evidence filter group_id installation_id lease_token loop_id member_id member_ids
    owned_by permissions plan_id principal_id reply_to reviewer_user_ids role_id role_ids role_name
    run_id scope_role_id secret_ref sender_agent_id sender_session_id skill_ids target_group_id
    target_user_ids targets template_id toolkit_ids user_id user_ids worker_instance_id
    worker_session_token workflow_id workspace_path capabilities`,
  'is a time, a duration or a schedule': `archived_at created_after created_at created_before cron
    delay duration ended_after ended_before expires_at expires_in interval timezone until
    wall_clock_timeout`,
  'has a narrow pattern': `email full_name identity_column kind match payload_mapping provider
    runtime_version secondary_key_column signal_name source step_key`,
  'is a secret, which is never shown': 'api_token private_key',
}
/** Individual fields in which hostile values are refused, each as row and path, by reason. */
const closedPlaces: Readonly<Record<string, readonly string[]>> = {
  'belongs to people, and the test has a service key': [
    'me.create_token name',
    'me.create_token tags.any',
  ],
  'names something that exists': [
    'agent.invoke agent_ref.id',
    'agent.invoke agent_ref.name',
    'agent.invoke config.skills.name',
    'agent.invoke config.skills.description',
    'agent.invoke config.toolkits.name',
  ],
  'has a narrow pattern': [
    'run.signal name',
    'environment.create name',
    'secret.put entries.any',
    'session.start_turn context.name',
    'interaction.create delivery.channels.email.to',
  ],
  'is a duration or one of a few words': ['environment.start_worker keep_warm'],
  'is a schema that must have the type object; filled in actions': [
    'agent.invoke output.schema.any',
    'session.start_turn output.schema.any',
    'workflow.create spec.steps.config.output_schema.any',
  ],
  'is the key of a repeat, which no page shows': [
    'loop.start external_id',
    'session.start_turn idempotency_key',
  ],
  'is an address that only the service calls': [
    'interaction.create consumer.http_subscriber.callback_url',
  ],
  'has base64 of a file; files are in another test': ['session.attach file'],
}
const names = new Set(Object.values(closedNames).flatMap((list) => list.split(/\s+/)))
const places = new Set(Object.values(closedPlaces).flat())
/** Whether a field is known to accept no hostile value. */
export const isClosed = (row: RowName, path: string): boolean =>
  places.has(`${row} ${path}`) ||
  names.has(path.split('.').findLast((name) => name !== 'any') ?? '')
/** All exceptions, so that a test can find obsolete ones. */
export const exceptions = { names, places }

/**
 * The marks of the fields that `fillByHand` fills are greater than this number. The marks of
 * `fillAll` are much smaller, so that no mark is used twice.
 */
const FIRST = 800_000

/**
 * Fills the fields that accept a hostile value only together with certain other fields.
 * @returns the filled fields, each as row and path.
 */
export async function fillByHand(s: Service, place: Place): Promise<string[]> {
  const filled: string[] = []
  const at = { project: place.handle }
  const text = (row: RowName, path: string, longest?: number): string => {
    filled.push(`${row} ${path}`)
    return hostileText(FIRST + filled.length, longest)
  }
  const json = (row: RowName, path: string) => {
    filled.push(`${row} ${path}`)
    return hostileJson(FIRST + filled.length)
  }
  const ask = (spec: object) =>
    s.ok('interaction.create', {
      ...at,
      kind: 'request_information',
      title: 'By hand',
      target_user_ids: [place.owner],
      spec,
    })
  const spec = 'interaction.create'
  await ask({
    mode: 'input',
    default_text: text(spec, 'spec.default_text'),
    placeholder: text(spec, 'spec.placeholder'),
  })
  const value = text(spec, 'spec.default_value', 900)
  const options = [{ value, label: value }]
  filled.push(`${spec} spec.default_values`)
  await ask({ mode: 'select', options, default_value: value })
  const asked = await ask({ mode: 'multi_select', options, default_values: [value] })
  await s.ok('interaction.cancel', {
    ...at,
    id: asked['id'],
    reason: text('interaction.cancel', 'reason', 1000),
  })
  const inSpec = (path: string, longest?: number) =>
    text('workflow.create', `spec.steps.config.${path}`, longest)
  const question = {
    default_text: inSpec('spec.default_text'),
    placeholder: inSpec('spec.placeholder'),
  }
  const choice = inSpec('spec.default_value', 900)
  filled.push('workflow.create spec.steps.config.spec.default_values')
  const interaction = (id: string, of: object) => ({
    id,
    kind: 'interaction',
    config: {
      protocol: 'request_information',
      targets: [place.owner],
      title: 'By hand',
      spec: of,
    },
  })
  const nap = { id: 'nap', kind: 'sleep', config: { duration: '0' } }
  const several = {
    mode: 'multi_select',
    options: [{ value: choice, label: choice }],
    default_values: [choice],
  }
  filled.push('workflow.create spec.steps.config.branches.id')
  const made = await s.ok('workflow.create', {
    ...at,
    name: 'By hand',
    spec: {
      steps: [
        {
          id: 'both',
          kind: 'parallel',
          config: {
            branches: [
              { id: 'constructor', steps: [nap], output: { it: inSpec('branches.output.any') } },
            ],
          },
        },
        {
          id: 'judge',
          kind: 'check',
          config: {
            checks: [{ name: 'a', kind: 'expr', expr: 'false' }],
            on_fail: 'gate',
            gate: { targets: [place.owner], prompt: inSpec('gate.prompt') },
          },
        },
        interaction('one', { mode: 'input', ...question }),
        interaction('two', several),
        { id: 'wait', kind: 'wait_for_event', config: { event_type: 'signal.go' } },
      ],
    },
  })
  const run = await s.ok('workflow.run', { ...at, id: made['id'] })
  await s.ok('run.signal', {
    ...at,
    id: run['id'],
    name: 'go',
    payload: json('run.signal', 'payload.any'),
  })
  await s.ok('run.signal', {
    ...at,
    id: place.run,
    step_key: 'nap',
    result: json('run.signal', 'result.any'),
  })
  filled.push('event.publish_many events.meta.any')
  await s.ok('event.publish', {
    ...at,
    event_type: 'by.hand',
    meta: { note: text('event.publish', 'meta.any', 1000) },
  })
  await s.ok('environment.create', {
    ...at,
    name: 'by-hand',
    tags: { note: text('environment.create', 'tags.any', 200) },
  })
  const table = await s.ok('table.create', {
    ...at,
    name: 'by_hand',
    schema: {
      identity_column: 'name',
      columns: [
        { name: 'name', type: 'string', required: true },
        {
          name: 'constructor',
          type: 'string',
          default: text('table.create', 'schema.columns.default'),
        },
        { name: 'toString', type: 'object' },
      ],
    },
  })
  filled.push('table.create schema.columns.name', 'row.bulk rows.any')
  const row = { name: text('row.insert', 'data.any', 400), toString: hostileJson(FIRST) }
  await s.ok('row.insert', { ...at, id: table['id'], data: row })
  const session = await s.ok('session.create', { ...at, agent_id: place.agent, mode: 'new' })
  await s.ok('session.start_turn', {
    ...at,
    session_id: session['id'],
    content: [{ type: 'text', text: 'by hand' }],
    context: [
      {
        name: 'constructor',
        content: text('session.start_turn', 'context.content'),
      },
    ],
  })
  await s.ok('toolkit.create', {
    ...at,
    name: 'By hand',
    actions: [
      {
        selector_type: 'exact',
        selector: text('toolkit.create', 'actions.selector', 100).replaceAll(/\s/g, ''),
      },
    ],
  })
  return filled
}
