/**
 * Calls every row with every role. Permissions, and for some rows membership, decide the outcome.
 */
import t from 'tap'
import {
  brandedPermission,
  organizationOnly,
  permissions,
  type SystemRole,
  systemRoleId,
  systemRoleNames,
  systemRoles,
} from '../../protocol/access/schema.ts'
import { api } from '../../protocol/api.ts'
import { type Row, routeOf } from '../../protocol/contract.ts'
import { type Answered, encodedBody, serviceWithClient, together } from './support/ask.ts'
import { bad } from './support/judge.ts'
import { accepted } from './support/people.ts'
import { bodyFor, furnish, type Place, placedPath, queryFor, rows } from './support/rows.ts'
import { shownIn } from './support/shown.ts'

const { s, client } = await serviceWithClient(t)
t.setTimeout(120_000)

interface Held {
  readonly what: string
  readonly key: string
  readonly may: ReadonlySet<string>
}
/**
 * Creates an organization key and a project key for each role. Also creates two keys that are
 * capped by a role, and one key whose principal has two roles.
 */
async function keysFor({ handle }: Place): Promise<Held[]> {
  const held: Held[] = []
  for (const role of systemRoleNames) {
    const inside = new Set<string>(systemRoles[role].filter((one) => !organizationOnly.has(one)))
    const whole = await s.ok('key.create_organization', { name: `${handle} ${role}`, role })
    const may = new Set(systemRoles[role])
    held.push({ what: `organization ${role}`, key: String(whole['key']), may })
    const principal = await s.ok('principal.create', {
      project: handle,
      name: role,
      role_ids: [systemRoleId(role)],
    })
    const key = async (name: string, more: object = {}) => {
      const one = { project: handle, name, principal_id: principal['id'], ...more }
      return String((await s.ok('key.create', one))['key'])
    }
    held.push({ what: `project ${role}`, key: await key(role), may: inside })
    if (role === 'Owner' || role === 'Viewer')
      held.push({
        what: `project ${role} capped`,
        key: await key(`${role} capped`, { scope_role_id: systemRoleId('Viewer') }),
        may: new Set(systemRoles.Viewer),
      })
  }
  const several = await s.ok('principal.create', {
    project: handle,
    name: 'several',
    role_ids: ['role_viewer', 'role_operator'],
  })
  const one = { project: handle, name: 'several', principal_id: several['id'] }
  const { key } = await s.ok('key.create', one)
  held.push({
    what: 'project Viewer and Operator',
    key: String(key),
    may: new Set(systemRoles.Operator),
  })
  return held
}

const ask = (
  name: (typeof rows)[number][0],
  place: Place,
  key: string,
  body = bodyFor(name, place),
): Promise<Answered> => {
  const row: Row = api[name]
  const sent = encodedBody(row, body)
  return client.ask({
    ...sent,
    method: routeOf(row).method,
    path: placedPath(name, place) + queryFor(name),
    headers: { authorization: `Bearer ${key}`, ...sent.headers },
  })
}
const rank = (name: string): number =>
  name === 'project.delete' ? 2 : /delete|revoke/.test(name) ? 1 : 0
/** Rows that end records come after the others, and the row that ends the project comes last. */
const order = [...rows].sort(([a], [b]) => rank(a) - rank(b))
/**
 * Returns the permissions that a row requires. The removal of another member requires a second
 * permission. An upload without a lease token requires the permission to edit.
 */
const demands = (
  name: string,
  { shape: { permission } }: Row,
): readonly Row['shape']['permission'][] =>
  name === 'channel.remove_member'
    ? [permission, 'channel.write']
    : name === 'artifact.create'
      ? ['project.edit']
      : [permission]
/** Returns the permission that a refusal must report; for an action call, that of the action. */
const named = (name: (typeof rows)[number][0], permission: string, place: Place): string =>
  permission === 'actions.execute.*'
    ? `actions.execute.${placedPath(name, place).split('/').at(-2)}`
    : brandedPermission(permission, 'service')
/** Whether a refusal is due to the caller's relation to the interaction or saved view. */
const notAsked = (name: string, code: string, what = ''): boolean =>
  ((code === 'forbidden' || (code === 'permission_denied' && what.endsWith(' capped'))) &&
    (name === 'interaction.respond' || name === 'interaction.review')) ||
  (code === 'permission_denied' && (name === 'saved_view.update' || name === 'saved_view.delete'))
/** Codes with which a permitted request may be refused because of the state of its records. */
const spent = new Set([
  'not_found',
  'conflict',
  'already_exists',
  'run_not_suspended',
  'run_not_failed',
  'session_turn_active',
  'environment_leased',
  'environment_worker_unavailable',
])
/** Codes with which a channel may refuse a permitted request because of the caller's membership. */
const unjoined = new Set(['forbidden', 'not_channel_member', 'already_member'])

/** Whether a response refuses a request, and names this permission. */
function isDenied({ status, text }: Answered, missing: string): boolean {
  if (status !== 403) return false
  const { error } = JSON.parse(text) as {
    error?: { code: string; details?: { permission?: string } }
  }
  return error?.code === 'permission_denied' && error.details?.permission === missing
}

const needsWorker: ReadonlySet<string> = new Set(['worker.drain', 'environment.attach'])

t.test('the owner is accepted on every row, so every example is valid', async (t) => {
  // Rows of one resource interfere with each other, so each project is used by at most one of them.
  const places: Promise<Place>[] = []
  const seen = new Map<string, number>()
  for (const [name, row] of order) {
    const nth = seen.get(row.shape.tag) ?? 0
    seen.set(row.shape.tag, nth + 1)
    const place = await (rank(name) > 0 ? furnish(s) : (places[nth] ??= furnish(s)))
    const { key, body } = await accepted(s, name, place)
    const worker = needsWorker.has(name)
      ? await s.worker({ worker_instance_id: place.instance }, { key, project: place.handle })
      : undefined
    const answer = await ask(name, place, key, body)
    worker?.close()
    if (row.shape.stream === 'socket') t.equal(answer.status, 426, name)
    else if (name === 'environment.worker_logs')
      t.match(answer.text, '"environment_worker_unavailable"', 'no host runs in this test')
    else if (name === 'webhook.resend')
      t.match(answer.text, '"not_found"', 'the webhook of a place has no deliveries')
    else if (answer.status >= 300)
      t.fail(`${name} answered ${answer.status} ${answer.text.slice(0, 300)}`)
    else t.equal(bad(name, row, answer), undefined, name)
  }
})

t.test('each role may do exactly what its permissions allow', async (t) => {
  const place = await furnish(s)
  for (const { what, key, may } of await keysFor(place)) {
    // Each project key is used in its own project, and each organization key in a new project.
    const at = what.startsWith('organization') ? await furnish(s) : place
    const lacking = (name: string, row: Row) =>
      demands(name, row).find(
        (permission) => permission !== 'authenticated' && !may.has(permission),
      )
    const allowed = order.filter(([name, row]) => lacking(name, row) === undefined)
    const before = await shownIn(s, at)
    const refused = order.filter(
      ([name, row]) => row.shape.stream !== 'socket' && lacking(name, row) !== undefined,
    )
    await together(refused, async ([name, row]) => {
      const answer = await ask(name, at, key)
      const missing = named(name, lacking(name, row) ?? '', at)
      if (!isDenied(answer, missing))
        t.fail(
          `${what} lacks ${missing}, but ${name} answered ${answer.status} ${answer.text.slice(0, 200)}`,
        )
    })
    t.strictSame(await shownIn(s, at), before, `${what} changed nothing with what it may not`)
    for (const [name, row] of allowed) {
      // Rows that end records are omitted, because the other callers of this project need the
      // records.
      if (row.shape.stream === 'socket' || (at === place && rank(name) > 0)) continue
      const answer = await ask(name, at, key)
      const fault = bad(name, row, answer)
      const code =
        answer.status < 400
          ? undefined
          : (JSON.parse(answer.text) as { error: { code: string } }).error.code
      if (
        fault !== undefined ||
        (code !== undefined &&
          !spent.has(code) &&
          !notAsked(name, code, what) &&
          !(name.startsWith('channel.') && unjoined.has(code)))
      )
        t.fail(
          `${what} may call ${name}, which answered ${answer.status}: ${fault ?? answer.text.slice(0, 200)}`,
        )
    }
  }
})

t.test(
  'a role with one permission opens exactly the rows that require it, for keys and people',
  async (t) => {
    const place = await furnish(s)
    const { handle } = place
    /** A principal without roles, so that creating a key for it grants no further permissions. */
    const humble = await s.ok('principal.create', { project: handle, name: 'humble' })
    const target = await s.ok('principal.create', { project: handle, name: 'target' })
    const given = new Set<string>()
    for (const permission of Object.keys(permissions).filter((id) => !organizationOnly.has(id))) {
      const role = await s.ok('role.create', {
        project: handle,
        name: `only ${permission}`,
        permissions: [brandedPermission(permission, 'service')],
      })
      const holder = await s.ok('principal.create', {
        project: handle,
        name: `only ${permission}`,
        role_ids: [role['id']],
      })
      const person = await s.ok('user.create', { project: handle, name: `only ${permission}` })
      await s.ok('assignment.create', {
        project: handle,
        principal_id: person['id'],
        role_id: role['id'],
      })
      const keys = {
        key: String(
          (
            await s.ok('key.create', {
              project: handle,
              name: `only ${permission}`,
              principal_id: holder['id'],
            })
          )['key'],
        ),
        token: String(
          (await s.ok('token.create', { project: handle, id: person['id'], name: 'only' }))['key'],
        ),
      }
      for (const [what, key] of Object.entries(keys)) {
        const asked = order.filter(
          ([, { shape }]) => shape.stream !== 'socket' && shape.permission !== 'authenticated',
        )
        const missingFor = (name: string, row: Row) =>
          demands(name, row).find((one) => one !== permission)
        const bodyOf = (name: (typeof rows)[number][0]) =>
          name === 'key.create'
            ? {
                name: `by ${what} of ${permission}`,
                principal_id: humble['id'],
                allow_unassigned_principal: true,
              }
            : name === 'role.create'
              ? { name: `by ${what} of ${permission}`, permissions: [] }
              : name === 'assignment.create'
                ? { principal_id: target['id'], role_id: role['id'] }
                : bodyFor(name, place)
        await together(asked, async ([name, row]) => {
          const missing = missingFor(name, row)
          if (missing === undefined) return
          const answer = await ask(name, place, key, bodyOf(name))
          if (!isDenied(answer, named(name, missing, place)))
            t.fail(
              `${permission} does not open ${name}, ` +
                `but it answered a ${what} ${answer.status} ${answer.text.slice(0, 200)}`,
            )
        })
        for (const [name, row] of asked) {
          // Rows that end records are called last, with the token of the person, not with the key.
          if (missingFor(name, row) !== undefined || (rank(name) > 0 && what === 'key')) continue
          const answer = await ask(name, place, key, bodyOf(name))
          const error =
            answer.status < 300
              ? undefined
              : (JSON.parse(answer.text) as { error: { code: string } }).error
          given.add(name)
          const fault = bad(name, row, answer)
          if (
            fault !== undefined ||
            (error &&
              !spent.has(error.code) &&
              !notAsked(name, error.code) &&
              !(name.startsWith('channel.') && unjoined.has(error.code)))
          )
            t.fail(
              `${permission} opens ${name} to a ${what}, which answered ${answer.status}: ` +
                `${fault ?? answer.text.slice(0, 200)}`,
            )
        }
      }
    }
    const unopened = order
      .filter(([name, row]) => demands(name, row).length === 1 && !given.has(name))
      .filter(
        ([, { shape }]) =>
          shape.permission !== 'authenticated' &&
          shape.stream !== 'socket' &&
          !organizationOnly.has(shape.permission),
      )
    t.same(
      unopened.map(([name]) => name),
      [],
      'every row was opened by its permission',
    )
  },
)

t.test('workers may connect exactly with the permission work.execute', async (t) => {
  const place = await furnish(s)
  for (const { what, key, may } of await keysFor(place)) {
    const worker = await s.worker({ action_names: ['never'] }, { key, project: place.handle }).then(
      (one) => one,
      (error: Error) => error,
    )
    t.equal(!(worker instanceof Error), may.has('work.execute'), what)
    if (worker instanceof Error) t.match(worker.message, /403/, what)
    else worker.close()
  }
})

t.test(
  'no caller can raise its own rights; revoked rights end with the next request',
  async (t) => {
    const { handle } = await furnish(s)
    for (const role of ['Viewer', 'Operator', 'Editor'] as const satisfies readonly SystemRole[]) {
      const principal = await s.ok('principal.create', {
        project: handle,
        name: `climber ${role}`,
        role_ids: [systemRoleId(role)],
      })
      const key = String(
        (
          await s.ok('key.create', {
            project: handle,
            name: `climber ${role}`,
            principal_id: principal['id'],
          })
        )['key'],
      )
      const tries = [
        s.call(
          'principal.update',
          { project: handle, id: principal['id'], role_ids: ['role_owner'] },
          { key },
        ),
        s.call(
          'principal.create',
          { project: handle, name: `owner by ${role}`, role_ids: ['role_owner'] },
          { key },
        ),
        s.call(
          'key.create_organization',
          { name: `by ${role} of ${handle}`, role: 'Viewer' },
          { key },
        ),
        s.call('project.create', { name: `by ${role} of ${handle}` }, { key }),
      ]
      for (const { status, body } of await Promise.all(tries))
        t.ok(status === 403, `${role}: ${status} ${JSON.stringify(body).slice(0, 200)}`)
      const climbing = await Promise.all([
        s.call(
          'assignment.create',
          { project: handle, principal_id: principal['id'], role_name: 'Owner' },
          { key },
        ),
        s.call(
          'role.create',
          { project: handle, name: `by ${role}`, permissions: ['service.project.admin'] },
          { key },
        ),
      ])
      for (const { status } of climbing) t.equal(status, 403)
      await s.ok('principal.update', {
        project: handle,
        id: principal['id'],
        role_ids: ['role_viewer'],
      })
      await s.refused(
        'run.cancel_many',
        { project: handle, run_ids: ['x'] },
        403,
        'permission_denied',
        { key },
      )
    }
  },
)
