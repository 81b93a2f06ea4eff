/**
 * Creates records of many kinds in a project, and collects the responses of read operations about
 * them.
 */
import { api, type RowName } from '../../../protocol/api.ts'
import type { Row } from '../../../protocol/contract.ts'
import { requestOf, type Service } from '../../support/service.ts'
import { artifactClient } from '../artifacts/client.ts'
import { acting, failing, instant, listOf, sleeping, until, waiting } from './given.ts'
import { insertAll, tableOf } from './tables.ts'

/**
 * Ids of the created records. The run `early` has a stored signal for a later step. `inDay` waits
 * with a timeout, and `asleep` waits for the signal `go`. `runs[2]` waits for a worker that claims
 * the action `nobody`.
 */
export interface Filled {
  readonly runs: readonly string[]
  readonly asleep: string
  readonly early: string
  readonly inDay: string
  readonly workflow: string
  readonly principal: string
  readonly key: string
  readonly organization: string
  readonly user: string
  readonly role: string
  readonly interaction: string
  readonly channel: string
  readonly message: string
  /** Values of `:id`, by the first part of the operation's name. */
  readonly ids: Readonly<Record<string, unknown>>
  /** Values of the other path parameters, by name. */
  readonly slots: Readonly<Record<string, unknown>>
  /** Id of a skill of the organization. */
  readonly common: string
}

/**
 * Creates the records. Returns their ids once the worker is no longer listed as online and the last
 * use of the root key is recorded.
 */
export async function fill(s: Service): Promise<Filled> {
  const worker = await s.worker({ action_names: ['do', 'break'], worker_instance_id: 'w-restart' })
  const workflow = await s.ok('workflow.create', {
    name: 'Flow',
    spec: sleeping(),
    tags: { a: 'b' },
  })
  await s.ok('workflow.update', { id: workflow['id'], spec: waiting(), description: 'two' })
  await s.ok('workflow.delete', {
    id: (await s.ok('workflow.create', { name: 'Gone', spec: instant() }))['id'],
  })
  const principal = await s.ok('principal.create', { name: 'bot', role_ids: ['role_editor'] })
  const key = await s.ok('key.create', { name: 'bot key', principal_id: principal['id'] })
  await s.ok('key.revoke', { id: (await s.ok('key.create', { name: 'gone' }))['id'] })
  const role = await s.ok('role.create', {
    name: 'Custom',
    permissions: ['service.project.view', 'actions.execute.x.*'],
  })
  const user = await s.ok('user.create', {
    name: 'Ann',
    email: 'ann@example.org',
    role_ids: [role['id']],
  })
  await s.ok('token.create', { id: user['id'], name: 'laptop' })
  await s.ok('assignment.create', { principal_id: principal['id'], role_id: role['id'] })
  const organization = await s.ok('key.create_organization', { name: 'org key', role: 'Viewer' })
  await s.ok('project.create', { name: 'Other', external_ref: 'x/1' })
  await s.ok('project.delete', {
    project: (await s.ok('project.create', { name: 'Deleted' }))['handle'],
  })
  const runs: string[] = []
  const start = async (input: Record<string, unknown>) => {
    const { id } = await s.ok('run.start', input)
    runs.push(String(id))
    return String(id)
  }
  await start({ spec: instant({ n: '${{ input.n }}' }), input: { n: 1 }, external_id: 'e' })
  const asleep = await start({ definition_id: workflow['id'], queue: 'q' })
  await start({ spec: acting('nobody') })
  await s.ok('run.cancel', { id: await start({ spec: sleeping() }), reason: 'no' })
  await start({ spec: failing() })
  const large = await start({ spec: waiting('big', {}, { output: { size: 'large' } }) })
  await s.ok('run.signal', { id: large, name: 'big', payload: { text: 'x'.repeat(400_000) } })
  const early = await start({
    spec: {
      steps: [
        { id: 'a', kind: 'wait_for_event', config: { event_type: 'signal.first' } },
        { id: 'b', kind: 'wait_for_event', config: { event_type: 'signal.early' } },
      ],
    },
  })
  await s.ok('run.signal', { id: early, name: 'early', payload: { n: 1 } })
  for (const [action, outcome] of [
    ['do', { result: { n: 1 } }],
    ['break', { status: 'failed', error_type: 'Boom', error_message: 'no' }],
  ] as const) {
    await start({ spec: acting(action) })
    await worker.report(await worker.job(), outcome)
  }
  const ask = () =>
    s.ok('interaction.create', {
      kind: 'request_approval',
      title: 'Go?',
      target_user_ids: [principal['id']],
    })
  const interaction = await ask()
  await s.ok('interaction.cancel', { id: interaction['id'], reason: 'no' })
  await ask()
  const channel = await s.ok('channel.create', { name: 'talk', member_ids: [principal['id']] })
  const message = await s.ok('channel.send', { id: channel['id'], content: 'a word' })
  await s.ok('channel.send', {
    id: channel['id'],
    content: 'another word',
    reply_to: message['id'],
  })
  await s.ok('channel.edit', { id: channel['id'], message_id: message['id'], pinned: true })
  await s.ok('channel.delete', { id: (await s.ok('channel.create', { name: 'gone' }))['id'] })
  const action = await s.ok('action.create', {
    name: 'crm.find',
    endpoint_url: 'https://calls.invalid/',
    input_schema: { type: 'object' },
  })
  await s.ok('action.update', { action_name: 'crm.find', title: 'Find' })
  await s.ok('action.rotate_secret', { action_name: 'crm.find' })
  await s.ok('action.delete', {
    action_name: (await s.ok('action.create', { name: 'gone', endpoint_kind: 'worker' }))['name'],
  })
  const shared = await s.ok('organization_action.create', {
    name: 'ledger.post',
    endpoint_url: 'https://ledger.example.org/',
  })
  await s.ok('organization_action.rotate_secret', { action_id: shared['id'] })
  await s.ok('organization_action.activate_secret', { action_id: shared['id'], version: 2 })
  // The host of this action does not exist, so the call fails.
  runs.push(String((await s.ok('action.invoke', { action_name: 'crm.find' }))['run_id']))
  const event = await s.ok('event.publish', { event_type: 'order.paid', event: { n: 1 } })
  const loop = await s.ok('loop.create', {
    name: 'nightly',
    steps: [{ id: 'rest', kind: 'sleep', config: { duration: '1h' } }],
    triggers: [{ key: 'paid', kind: 'event', config: { event_type: 'order.paid' } }],
  })
  runs.push(String((await s.ok('loop.start', { id: loop['id'] }))['id']))
  const agent = await s.ok('agent.create', {
    name: 'clerk',
    model_route: { mode: 'worker', provider: 'p', model: 'm' },
  })
  const [toolkit, skill, common] = await Promise.all([
    s.ok('toolkit.create', { name: 'tools' }),
    s.ok('skill.create', { name: 'how', instructions: 'so' }),
    s.ok('skill.create_organization', { name: 'all', instructions: 'so' }),
  ])
  await s.ok('agent.assign_toolkits', { id: agent['id'], toolkit_ids: [toolkit['id']] })
  await s.ok('agent.assign_skills', { id: agent['id'], skill_ids: [skill['id']] })
  await s.ok('memory.save', { id: agent['id'], memory_key: 'likes', content: 'tea' })
  const binding = await s.ok('agent.set_binding', {
    id: agent['id'],
    provider: 'slack',
    integration_id: 'T1',
  })
  const talk = (await s.ok('agent.invoke', {
    agent_ref: { id: agent['id'] },
    input: { content: [{ type: 'text', text: 'hello' }] },
  })) as Record<string, Record<string, unknown>>
  const [session_id, turn_id] = [talk['session']?.['id'], talk['turn']?.['id']]
  const nudge = await s.ok('session.nudge', { session_id, content: 'quickly' })
  await s.ok('session.cancel_turn', { session_id, turn_id })
  await s.ok('session.attach', {
    session_id,
    name: 'note.txt',
    file: Buffer.from('a note').toString('base64'),
  })
  const webhook = await s.ok('webhook.create', { name: 'hook', enabled: false })
  await s.ok('secret.put', { secret_name: 'kept', entries: { word: 'w' } })
  const table = await tableOf(s)
  const [row] = await insertAll(s, table['id'], [{ number: '1', customer: 'ann' }])
  const { body: artifact } = await artifactClient(s.url, s.key).put(
    'orders.txt',
    Buffer.from('all orders'),
  )
  const environment = await s.ok('environment.create', { name: 'kept' })
  await s.ok('repository_host.put', {
    host_name: 'kept',
    kind: 'token',
    url: 'http://127.0.0.1:9',
    read_token: 'read',
  })
  await s.ok('blueprint.apply', {
    blueprint_key: 'kept',
    resources: { skills: [{ key: 'kept', name: 'Bound', instructions: 'Be kind.' }] },
  })
  await s.ok('resolver.put', {
    source: 'stored',
    endpoint_url: 'https://resolver.example.org/definitions',
    auth: { token: 'kept' },
  })
  await s.ok('oauth_origins.put', { origins: ['https://app.example.org'] })
  const savedView = await s.ok('saved_view.create', {
    name: 'failures',
    list: 'runs',
    filter: { status: ['failed'] },
  })
  await s.ok('me.save_preferences', { preferences: { columns: ['id'] } })
  const inDay = await start({ spec: waiting('never', { timeout: { duration: '24h' } }) })
  worker.close()
  await until(
    () => s.ok('worker.list'),
    ({ items }) => !JSON.stringify(items).includes('online'),
  )
  await until(
    () => s.ok('key.list_organization'),
    (keys) =>
      listOf(keys).every(({ name, last_used_at }) => name !== 'root' || last_used_at !== undefined),
  )
  return {
    runs,
    asleep,
    early,
    inDay,
    workflow: String(workflow['id']),
    principal: String(principal['id']),
    key: String(key['id']),
    organization: String(organization['id']),
    user: String(user['id']),
    role: String(role['id']),
    interaction: String(interaction['id']),
    channel: String(channel['id']),
    message: String(message['id']),
    ids: {
      event: event['source_event_id'],
      loop: loop['id'],
      agent: agent['id'],
      memory: agent['id'],
      toolkit: toolkit['id'],
      skill: skill['id'],
      table: table['id'],
      row: table['id'],
      saved_view: savedView['id'],
    },
    common: String(common['id']),
    slots: {
      action_name: action['name'],
      action_id: shared['id'],
      session_id,
      turn_id,
      nudge_id: nudge['nudge_id'],
      binding_id: binding['id'],
      memory_key: 'likes',
      webhook_id: webhook['id'],
      secret_name: 'kept',
      row_id: row?.['id'],
      artifact_id: artifact['id'],
      environment_id: environment['id'],
      host_name: 'kept',
      blueprint_key: 'kept',
    },
  }
}

/** Returns the responses of read operations for these records, by operation and id. */
export async function everything(
  s: Service,
  {
    runs,
    workflow,
    principal,
    key,
    organization,
    user,
    role,
    interaction,
    channel,
    message,
    ids,
    slots,
    common,
  }: Filled,
): Promise<Record<string, string>> {
  const answers: Record<string, string> = {}
  for (const [name, row] of Object.entries(api) as [RowName, Row][]) {
    if (row.verb !== 'query' && (row.verb !== 'stream' || row.shape.stream !== 'accept')) continue
    // These operations list the tokens of the calling person, but the caller here is a service. The
    // tokens of people are read with `token.list`.
    if (name === 'me.list_tokens' || name === 'cli_credential.list') continue
    // These responses depend on the time of the request.
    if (name === 'session.turn_live' || name === 'artifact.signed_url') continue
    // A restart changes the state of the installation.
    if (name === 'cluster.get') continue
    // This operation needs a schedule and reads no record.
    if (name === 'schedule.next') continue
    // No host answers, and no repository is declared.
    if (name === 'environment.worker_logs' || name === 'environment.git_credentials') continue
    const named: readonly unknown[] = !row.route.includes(':id')
      ? [undefined]
      : name.startsWith('run.')
        ? runs
        : name.startsWith('workflow.')
          ? [workflow]
          : name.startsWith('key.')
            ? [name.includes('organization') ? organization : key]
            : name.startsWith('principal.')
              ? [principal, user]
              : /^(user|token)\./.test(name)
                ? [user]
                : name.startsWith('interaction.')
                  ? [interaction]
                  : name.startsWith('channel.')
                    ? [channel]
                    : name === 'skill.usage' || /^skill\..*_organization$/.test(name)
                      ? [common]
                      : Object.hasOwn(ids, name.split('.')[0] ?? '')
                        ? [ids[name.split('.')[0] ?? '']]
                        : ['role_admin', role]
    for (const id of named) {
      const list = row.shape.query && JSON.stringify(row.shape.query).includes('"limit"')
      const { method, path, body } = requestOf(row, {
        ...(id !== undefined && { id }),
        ...Object.fromEntries(
          Object.entries(slots).filter(([slot]) => row.route.includes(`:${slot}`)),
        ),
        ...(list && { limit: 200 }),
        ...(name === 'channel.message' && { message_id: message }),
        ...(name === 'channel.search' && { q: 'word' }),
        ...(/^(table|row)\.search$/.test(name) && { query: 'ann' }),
        ...(name === 'workflow.versions' && { include_spec: true }),
        ...(/^(principal|user)\.list$/.test(name) && { include_disabled: true }),
      })
      const { status, text } = await s.raw(method, path, body === undefined ? {} : { body })
      // An overview ends with the current minute, so it changes with time. Therefore, its times and
      // its minutes without runs are removed.
      const lasting = text
        .replace(/"(generated_at|period_start)":"[^"]*"/g, '')
        .replace(/,?\{"at":"[^"]*","started":0,"completed":0,"failed":0,"cancelled":0\}/g, '')
      answers[`${name} ${String(id ?? '')}`] = `${status} ${lasting}`
    }
  }
  for (const id of runs.slice(0, 2))
    answers[`stream ${id}`] = JSON.stringify(
      await s.follow('run.events', { id }, ({ event }) => event === 'run.suspended'),
    )
  const last = listOf(await s.ok('run.events', { id: runs.at(-1), limit: 200 })).at(-1)?.[
    'sequence'
  ]
  answers['feed'] = JSON.stringify(
    await s.follow('run.feed', { since: 0 }, ({ id }) => Number(id) >= Number(last)),
  )
  return answers
}
