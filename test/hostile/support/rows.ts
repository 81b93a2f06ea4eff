/**
 * Valid requests for every row of the table: a project with one record of each kind, the ids in the
 * path of a row, and a body that the row accepts. A new row is tested automatically if this file
 * defines values for the slots of its path. Otherwise, an error is thrown.
 */
import { api, type RowName } from '../../../protocol/api.ts'
import { type Row, routeOf, type Shape } from '../../../protocol/contract.ts'
import { artifactClient } from '../../scenarios/artifacts/client.ts'
import { acting, failing, instant, listOf, sleeping, until } from '../../scenarios/support/given.ts'
import type { Service } from '../../support/service.ts'
import { patient } from './ask.ts'
import { bodies, tableSchema } from './bodies.ts'
import { exampleOf } from './generate.ts'
import { ownerOf } from './owner.ts'

export const rows = Object.entries(api) as [RowName, Row][]
export const slotsOf = (name: RowName): string[] => routeOf(api[name]).slots

/** A separate project with a record of each kind. Most fields are ids of these records. */
export interface Place {
  readonly id: string
  readonly handle: string
  readonly run: string
  readonly failed: string
  readonly working: string
  readonly job: string
  readonly workflow: string
  readonly workflow_handle: string
  readonly key: string
  readonly principal: string
  /** A principal without a key. */
  readonly loose: string
  readonly user: string
  readonly token: string
  readonly role: string
  readonly assignment: string
  readonly organization_key: string
  readonly instance: string
  readonly interaction: string
  /** An interaction that has ended. */
  readonly settled: string
  /** An interaction that waits for a review. */
  readonly submitted: string
  readonly channel: string
  readonly message: string
  readonly loop: string
  readonly organization_action: string
  readonly webhook: string
  readonly saved_view: string
  /** The principal of the owner key, which administers the channel. */
  readonly owner: string
  readonly event: string
  readonly agent: string
  readonly toolkit: string
  readonly binding: string
  readonly skill: string
  /** A skill of the organization that is assigned to no agent. */
  readonly shared: string
  /** A session of the agent with a running turn and a pending nudge. */
  readonly session: string
  /** A session without turns. */
  readonly resting: string
  /** A session without messages. */
  readonly silent: string
  readonly turn: string
  readonly nudge: string
  /** A file of the session. */
  readonly artifact: string
  readonly table: string
  readonly row: string
  /** An artifact of the project. */
  readonly upload: string
  readonly environment: string
  /** An environment with a lease. */
  readonly leased: string
  /** The token of the lease of `leased`. */
  readonly lease: string
  /** A console session of the owner key. */
  readonly console_session: string
}
let made = 0
const fired = { triggers: [{ kind: 'manual', key: 'manual', config: {} }] }
/**
 * Creates a project with a record of each kind.
 * @param mark a text in the names and contents of the records, for tests to search for.
 */
export async function furnish(s: Service, mark = 'plain'): Promise<Place> {
  await until(
    () => s.raw('GET', '/readyz'),
    ({ status }) => status === 200,
    'readiness',
  )
  const ok = patient(s)
  const number = ++made
  const name = `${mark} ${number}`
  const handle = `${mark.toLowerCase()}-${number}`
  const at = { project: handle }
  // Calls that do not depend on each other are made together. The service commits them together,
  // which halves the processor time.
  const [project, organization_key, shared, common, signed, owner] = await Promise.all([
    ok('project.create', { name, handle }),
    ok('key.create_organization', { name, role: 'Viewer' }),
    // The host name does not resolve, so calls to the actions fail.
    ok('organization_action.create', {
      name: `shared.${handle}`,
      endpoint_url: 'https://calls.invalid/',
    }),
    ok('skill.create_organization', { name: `shared ${number}`, instructions: 'for all' }),
    s.raw('POST', '/v1/auth/console/sessions', {
      key: null,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ credential: s.key }),
    }),
    ownerOf(s),
  ])
  const [run, failed, working, workflow, principal, loose, user, role, agent, table] =
    await Promise.all([
      ok('run.start', { ...at, spec: sleeping(), external_id: name, input: { secret: mark } }),
      ok('run.start', { ...at, spec: failing(), external_id: name }),
      ok('run.start', { ...at, spec: acting(`${mark}-act`) }),
      ok('workflow.create', { ...at, name, spec: instant() }),
      ok('principal.create', { ...at, name, role_ids: ['role_viewer'] }),
      ok('principal.create', { ...at, name: `${name} loose` }),
      ok('user.create', { ...at, name: `${name} person`, email: `${handle}@example.org` }),
      ok('role.create', { ...at, name: `${name} role`, permissions: ['service.project.view'] }),
      ok('agent.create', {
        ...at,
        name: `${name} agent`,
        model_route: { mode: 'worker', provider: mark, model: 'm' },
      }),
      ok('table.create', { ...at, name: `t${number}`, description: mark, schema: tableSchema }),
    ])
  const ask = (more: object) =>
    ok('interaction.create', {
      ...at,
      kind: 'request_approval',
      title: `${name}?`,
      target_user_ids: [owner, principal['id']],
      ...more,
    })
  const [interaction, settled, submitted, key, token, assignment, channel, binding, talk, row] =
    await Promise.all([
      ask({}),
      ask({}),
      ask({ resolution_policy: { type: 'any_of', review: { reviewer_user_ids: [owner] } } }),
      ok('key.create', { ...at, name, principal_id: principal['id'] }),
      ok('token.create', { ...at, id: user['id'], name }),
      ok('assignment.create', { ...at, principal_id: loose['id'], role_id: role['id'] }),
      ok('channel.create', {
        ...at,
        name: handle,
        topic: mark,
        member_ids: [String(principal['id'])],
      }),
      ok('agent.set_binding', {
        ...at,
        id: agent['id'],
        provider: 'slack',
        integration_id: handle,
      }),
      ok('agent.invoke', {
        ...at,
        agent_ref: { id: agent['id'] },
        input: { content: [{ type: 'text', text: mark }] },
      }) as Promise<Record<string, Record<string, never>>>,
      ok('row.insert', { ...at, id: table['id'], data: { name: mark } }),
    ])
  const [loop, event, toolkit, skill, webhook, savedView, environment, held] = await Promise.all([
    ok('loop.create', { ...at, name: `${name} loop`, ...instant(), ...fired }),
    ok('event.publish', { ...at, event_type: 'order.paid', event: { mark } }),
    ok('toolkit.create', { ...at, name: `${name} toolkit` }),
    ok('skill.create', { ...at, name: `${name} skill`, instructions: mark }),
    ok('webhook.create', { ...at, name, enabled: false }),
    ok('saved_view.create', { ...at, name, list: 'runs', shared: true }),
    ok('environment.create', {
      ...at,
      name: handle,
      tags: { mark },
      repositories: [{ full_name: 'shop/orders', push: false, provider: handle }],
    }),
    ok('environment.acquire_matching', {
      ...at,
      name: `${handle}.leased`,
      ttl_seconds: 3600,
    }) as Promise<Record<string, Record<string, never>>>,
    ok('organization_action.rotate_secret', { action_id: shared['id'] }),
    ok('action.create', {
      ...at,
      name: handle,
      title: mark,
      endpoint_url: 'https://calls.invalid/',
    }),
    // Deleting an action with an endpoint needs more than the permission of the row.
    ok('action.create', { ...at, name: `${handle}.local`, endpoint_kind: 'worker' }),
    ok('secret.put', { ...at, secret_name: handle, entries: { word: 'kept' } }),
    ok('repository_host.put', {
      ...at,
      host_name: handle,
      kind: 'token',
      url: 'https://git.invalid',
      read_token: mark,
    }),
    ok('blueprint.apply', {
      ...at,
      blueprint_key: handle,
      resources: { skills: [{ key: handle, name: `bound ${mark}`, instructions: mark }] },
    }),
    ok('interaction.cancel', { ...at, id: settled['id'] }),
  ])
  const session_id = talk['session']?.['id']
  const [link, message, nudge, file, resting, silent, { body: upload }] = await Promise.all([
    ok('interaction.link', { ...at, id: submitted['id'], target_user_ids: [principal['id']] }),
    ok('channel.send', { ...at, id: channel['id'], content: `${mark} message` }),
    ok('session.nudge', { ...at, session_id, content: mark }),
    ok('session.attach', {
      ...at,
      session_id,
      name: `${mark}.txt`,
      file: Buffer.from(mark).toString('base64'),
    }) as Promise<Record<string, Record<string, never>>>,
    ok('session.create', { ...at, agent_id: agent['id'], session_key: 'resting' }),
    ok('session.create', { ...at, agent_id: agent['id'], session_key: 'silent' }),
    artifactClient(s.url, s.key).put(`${mark}.txt`, Buffer.from(mark), { project: handle }),
  ])
  const form = new URL(String(listOf(link)[0]?.['url']), s.url).pathname
  const [jobs] = await Promise.all([
    until(
      async () => listOf(await ok('run.jobs', { ...at, id: working['id'] })),
      (found) => found.length > 0,
      'the job',
    ),
    until(
      () => ok('run.get', { ...at, id: failed['id'] }),
      ({ status }) => status === 'failed',
      'the failure',
    ),
    s.raw('POST', form, {
      key: null,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'value=true',
    }),
  ])
  const [job] = jobs
  const id = (record: Readonly<Record<string, unknown>> | undefined, field = 'id') =>
    String(record?.[field])
  return {
    id: id(project),
    handle,
    run: id(run),
    failed: id(failed),
    working: id(working),
    job: id(job),
    workflow: id(workflow),
    workflow_handle: id(workflow, 'handle'),
    key: id(key),
    principal: id(principal),
    loose: id(loose),
    user: id(user),
    token: id(token),
    role: id(role),
    assignment: id(assignment),
    organization_key: id(organization_key),
    instance: `${mark}-worker-${made}`,
    interaction: id(interaction),
    settled: id(settled),
    submitted: id(submitted),
    channel: id(channel),
    message: id(message),
    loop: id(loop),
    organization_action: id(shared),
    webhook: id(webhook),
    saved_view: id(savedView),
    owner,
    event: id(event, 'source_event_id'),
    agent: id(agent),
    toolkit: id(toolkit),
    binding: id(binding),
    skill: id(skill),
    shared: id(common),
    session: id(talk['session']),
    resting: id(resting),
    silent: id(silent),
    turn: id(talk['turn']),
    nudge: id(nudge, 'nudge_id'),
    artifact: id(file['artifact']),
    table: id(table),
    row: id(row),
    upload: id(upload),
    environment: id(environment),
    leased: id(held['environment']),
    lease: id(held['lease'], 'token'),
    console_session: id(signed.body['session']),
  }
}
/** Returns the distinct values in a place: ids, handles, names, and the token of a lease. */
export const idsOf = (place: Place): string[] => [
  ...new Set(Object.values(place as unknown as Record<string, string>)),
]

function idIn(name: RowName, place: Place): string {
  if (name === 'run.retry' || name === 'run.recover') return place.failed
  if (name.startsWith('run.')) return place.run
  if (name.startsWith('workflow.')) return place.workflow
  if (name === 'principal.delete') return place.loose
  if (name.startsWith('principal.')) return place.principal
  if (name === 'interaction.review') return place.submitted
  if (name === 'interaction.delete') return place.settled
  if (name.startsWith('interaction.')) return place.interaction
  if (name.startsWith('role.')) return place.role
  if (name.startsWith('assignment.')) return place.assignment
  if (name.startsWith('user.') || name.startsWith('token.')) return place.user
  if (name.startsWith('loop.')) return place.loop
  if (name.startsWith('channel.')) return place.channel
  if (name.startsWith('event.')) return place.event
  if (name.startsWith('table.') || name.startsWith('row.')) return place.table
  if (name.startsWith('agent.') || name.startsWith('memory.')) return place.agent
  if (name.startsWith('toolkit.')) return place.toolkit
  if (name === 'skill.usage' || /^skill\.\w+_organization/.test(name)) return place.shared
  if (name.startsWith('skill.')) return place.skill
  if (/^key\.\w+_organization/.test(name)) return place.organization_key
  if (name.startsWith('key.')) return place.key
  if (name.startsWith('console_session.')) return place.console_session
  if (name.startsWith('saved_view.')) return place.saved_view
  throw new Error(`${name}: say here which record of a place stands in its path`)
}
export function filled(name: RowName, place: Place): Record<string, string> {
  const known: Readonly<Record<string, (() => string) | undefined>> = {
    project: () => place.handle,
    id: () => idIn(name, place),
    worker_instance_id: () => place.instance,
    message_id: () => place.message,
    token: () => place.token,
    memory_key: () => 'likes',
    binding_id: () => place.binding,
    action_name: () => (name === 'action.delete' ? `${place.handle}.local` : place.handle),
    action_id: () => place.organization_action,
    webhook_id: () => place.webhook,
    // The webhook of a place is disabled and has no deliveries, so this id belongs to none.
    delivery_id: () => `whd_${'0'.repeat(26)}`,
    trigger_id: () => 'manual',
    secret_name: () => place.handle,
    host_name: () => place.handle,
    blueprint_key: () => place.handle,
    version: () => '2',
    session_id: () =>
      name === 'session.start_turn' || name === 'session.delete'
        ? place.resting
        : name === 'session.compact'
          ? place.silent
          : place.session,
    turn_id: () => place.turn,
    nudge_id: () => place.nudge,
    row_id: () => place.row,
    environment_id: () => (name === 'environment.release' ? place.leased : place.environment),
    artifact_id: () => (name.startsWith('artifact.') ? place.upload : place.artifact),
    user_id: () => (name === 'channel.mark_read' ? place.owner : place.principal),
  }
  return Object.fromEntries(
    slotsOf(name).map((slot) => {
      const value = known[slot]?.()
      if (value === undefined)
        throw new Error(
          `${name}: say in test/hostile/support/rows.ts what stands in its path as ${slot}`,
        )
      return [slot, value]
    }),
  )
}

/** Returns a body that the row accepts, or undefined if requests to the row have no body. */
export function bodyFor(name: RowName, place: Place): object | undefined {
  const { body, as }: Shape = api[name].shape
  const made = bodies[name] ?? bodies[as as RowName]
  return body && (made?.(place) ?? (exampleOf(body) as object))
}

/**
 * Returns the query string, with its question mark, of a row that requires one; otherwise an empty
 * string.
 */
export const queryFor = (name: RowName): string =>
  name === 'channel.search' ? '?q=word' : name === 'schedule.next' ? '?cron=%40daily' : ''
/**
 * Returns the path of a row.
 * @param slots the values of its slots, already encoded.
 */
export const pathOf = (name: RowName, slots: Readonly<Record<string, string>>): string =>
  `/v1${routeOf(api[name]).path.replaceAll(/:(\w+)/g, (_, slot: string) => slots[slot] ?? '')}`
export const placedPath = (name: RowName, place: Place): string =>
  pathOf(
    name,
    Object.fromEntries(
      Object.entries(filled(name, place)).map(([slot, value]) => [slot, encodeURIComponent(value)]),
    ),
  )
