/**
 * Random commands on roles, assignments and principals, compared with a model of sets. Invariant:
 * the permissions of a principal are the union of the permissions of its roles.
 */
import fc from 'fast-check'
import t from 'tap'
import { projectActor } from '../../../actors/projects/project.ts'
import type { ProjectState } from '../../../actors/projects/state.ts'
import type { ProjectDirectory } from '../../../protocol/access/directory.ts'
import { allows, grantedBy } from '../../../protocol/access/roles.ts'
import { permissions, systemRoles } from '../../../protocol/access/schema.ts'
import { given, type Scene } from '../../support/given.ts'

const actor = projectActor({ brand: 'Service' })
const holds = Object.keys(permissions)
const catalog = [
  'project.view',
  'project.edit',
  'runs.operate',
  'work.execute',
  'actions.execute.crm.*',
  'actions.execute.mail',
  'actions.execute.*',
]
/** The permissions that the test checks. None of them contains a wildcard. */
const wanted = [
  'project.view',
  'project.edit',
  'runs.operate',
  'work.execute',
  'access.manage',
  'actions.execute.crm.add',
  'actions.execute.crm',
  'actions.execute.mail',
  'actions.execute.mail.send',
]
const covers = (granted: string, one: string) =>
  granted === one || (granted.endsWith('.*') && one.startsWith(granted.slice(0, -1)))

t.test('a wildcard covers all permissions below it, and a cap is an intersection', async () => {
  const some = fc.uniqueArray(fc.constantFrom(...catalog))
  void fc.assert(
    fc.property(some, some, (a, b) => {
      const record = (id: string, list: string[]) => ({
        id,
        name: id,
        permissions: list,
        created_at: '',
        updated_at: '',
      })
      const roles = { role_a: record('role_a', a), role_b: record('role_b', b) }
      for (const one of wanted) {
        const [inA, inB] = [
          a.some((granted) => covers(granted, one)),
          b.some((granted) => covers(granted, one)),
        ]
        const told = (ids: string[], cap?: string) => allows(grantedBy(roles, ids, cap), one)
        if (
          told(['role_a']) !== inA ||
          told(['role_a', 'role_b']) !== (inA || inB) ||
          told(['role_a'], 'role_b') !== (inA && inB) ||
          told(['role_a', 'role_gone']) !== inA ||
          told(['role_a'], 'role_gone')
        )
          throw new Error(one)
      }
    }),
    { numRuns: 300 },
  )
})

interface Model {
  roles: Map<string, Set<string>>
  has: Map<string, Set<string>>
}
type Move = readonly [
  what:
    | 'role'
    | 'regrant'
    | 'drop'
    | 'principal'
    | 'user'
    | 'assign'
    | 'unassign'
    | 'replace'
    | 'remove',
  a: number,
  b: number,
  list: readonly string[],
]
const move: fc.Arbitrary<Move> = fc.tuple(
  fc.constantFrom(
    'role',
    'regrant',
    'drop',
    'principal',
    'user',
    'assign',
    'assign',
    'unassign',
    'replace',
    'remove',
  ),
  fc.nat(9),
  fc.nat(9),
  fc.uniqueArray(fc.constantFrom(...catalog), { maxLength: 3 }),
)
const branded = (list: readonly string[]) =>
  list.map((permission) =>
    permission.startsWith('actions.') ? permission : `service.${permission}`,
  )
const pick = <T>(items: Iterable<T>, n: number): T | undefined => {
  const all = [...items]
  return all[n % Math.max(1, all.length)]
}

t.test('after any sequence of changes, the directory agrees with the model', async () => {
  let counted = 0
  void fc.assert(
    fc.property(fc.array(move, { minLength: 10, maxLength: 40 }), (moves) => {
      const model: Model = {
        roles: new Map(
          Object.entries(systemRoles)
            .slice(0, 3)
            .map(([name, list]) => [`role_${name.toLowerCase()}`, new Set(list)]),
        ),
        has: new Map(),
      }
      let scene: Scene<ProjectState> = given<ProjectState>(actor)
      const send = (name: string, input: object) => {
        const outcome = scene.when(name, { ...input, holds })
        scene = outcome
        counted++
        return {
          id: (outcome.reply as { id?: string } | undefined)?.id ?? '',
          ok: !outcome.refused,
        }
      }
      for (const [index, [what, a, b, list]] of moves.entries()) {
        const role = pick(model.roles.keys(), a) ?? ''
        const custom = pick([...model.roles.keys()].slice(3), a)
        const who = pick(model.has.keys(), b)
        if (what === 'role')
          model.roles.set(
            send('role.create', { name: `r${index}`, permissions: branded(list) }).id,
            new Set(list),
          )
        if (what === 'regrant' && custom) {
          send('role.update', { id: custom, permissions: branded(list) })
          model.roles.set(custom, new Set(list))
        }
        if (what === 'drop' && custom) {
          send('role.delete', { id: custom })
          model.roles.delete(custom)
          for (const set of model.has.values()) set.delete(custom)
        }
        if (what === 'principal' || what === 'user')
          model.has.set(
            send(`${what}.create`, { name: `p${index}`, role_ids: [role] }).id,
            new Set([role]),
          )
        if (what === 'assign' && who) {
          const { ok } = send('assignment.create', { principal_id: who, role_id: role })
          if (ok === model.has.get(who)?.has(role)) throw new Error('a role is given once')
          model.has.get(who)?.add(role)
        }
        if (what === 'unassign') {
          const one = pick(Object.values(scene.state.assignments), a)
          if (one) {
            send('assignment.delete', { id: one.id })
            model.has.get(one.principal_id)?.delete(one.role_id)
          }
        }
        if (what === 'replace' && who) {
          const wish = [...new Set([role, pick(model.roles.keys(), b) ?? role])]
          send(who.startsWith('user') ? 'user.update' : 'principal.update', {
            id: who,
            role_ids: wish,
          })
          model.has.set(who, new Set(wish))
        }
        if (what === 'remove' && who) {
          send(who.startsWith('user') ? 'user.delete' : 'principal.delete', { id: who })
          model.has.delete(who)
        }
      }
      const known = scene.ask('directory', { id: 'project_1' }) as ProjectDirectory
      const same = (x: Iterable<string>, y: Iterable<string>) =>
        JSON.stringify([...x].sort()) === JSON.stringify([...y].sort())
      if (!same(Object.keys(known.principals), model.has.keys())) throw new Error('principals')
      if (!same(Object.keys(known.roles), [...model.roles.keys()].slice(3)))
        throw new Error('roles')
      for (const [id, has] of model.has) {
        const ids = known.principals[id]?.role_ids ?? []
        if (
          !same(ids, has) ||
          !same(
            known.assignments
              .filter(({ principal_id }) => principal_id === id)
              .map(({ role_id }) => role_id),
            has,
          )
        )
          throw new Error(`roles of ${id}`)
        const granted = [...has].flatMap((role) => [...(model.roles.get(role) ?? [])])
        for (const one of wanted)
          if (
            allows(grantedBy(known.roles, ids), one) !==
            granted.some((permission) => covers(permission, one))
          )
            throw new Error(`${id} ${one}`)
      }
    }),
    { numRuns: 200 },
  )
  t.ok(counted > 1000, `${counted} commands`)
})
