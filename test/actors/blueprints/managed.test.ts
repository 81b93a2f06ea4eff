/**
 * Commands on resources that can belong to a blueprint, for every type and every row: protection,
 * ownership, versions, and bindings that are stored in the same commit as the resource.
 */
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { actorKinds } from '../../../actors/kinds.ts'
import { projectActor } from '../../../actors/projects/project.ts'
import type { RowName } from '../../../protocol/api.ts'
import { resourceFacts } from '../../../protocol/blueprints/types.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { given, START, typesOf } from '../../support/given.ts'
import { claim, commandsOf, created, desk, holder, known, managedTypes, send } from './resources.ts'

const other = { blueprint_key: 'other' }
/** Creates a resource, and removes its binding to its blueprint. */
const unbound = (type: (typeof managedTypes)[number]) =>
  send(created(type), type, [
    'blueprint.unbind',
    { resource_type: type, resource_id: 'x_1', ...desk },
  ])
/** The time of a command in Unix milliseconds. It differs from the time of the planned version. */
const later = START + 1_000

t.test('the table of this test has every row of every type', async (t) => {
  for (const [type, { rows, fields, owner }] of Object.entries(resourceFacts)) {
    const commands = commandsOf[type as keyof typeof resourceFacts]
    t.equal(commands !== undefined, rows !== undefined, type)
    if (!rows || !commands) continue
    const assigned = Object.values(fields).flatMap(({ assigned }) =>
      assigned ? [assigned.row] : [],
    )
    // The row that creates a channel or an environment is decided by the actor of the name.
    if (owner !== 'channel' && owner !== 'environment')
      t.equal(commands.create[0], rows.create as string)
    t.strictSame(
      commands.changes.map(([name]) => name as RowName),
      [rows.change, ...assigned],
    )
    t.equal(commands.remove[0], rows.remove as string)
  }
})

for (const type of managedTypes) {
  const { create, changes, remove } = commandsOf[type] ?? {
    create: ['', {}],
    changes: [],
    remove: ['', {}],
  }
  const refused = (...given: Parameters<typeof send>) => send(...given).refused?.refused
  t.test(`${type}: a creation binds the resource in the same decision`, async (t) => {
    const scene = created(type)
    t.ok(
      typesOf(scene).some((name) => name === `${type}.created`),
      typesOf(scene).join(', '),
    )
    t.match(scene.events.at(-1), {
      type: 'blueprint.bound',
      binding: { resource_id: 'x_1', ...desk },
    })
    t.match(known(scene, type), { id: 'x_1', type, binding: { key: 'k', ...desk } })
    const plain = send(holder(type), type, create)
    t.equal(plain.refused, undefined)
    t.notOk(typesOf(plain).includes('blueprint.bound'), 'an ordinary creation binds nothing')
    t.equal(
      refused(scene, type, create, claim(type, other)),
      'blueprint_plan_outdated',
      'the id has a binding already',
    )
  })
  t.test(`${type}: ordinary changes of a protected resource are refused`, async (t) => {
    const scene = created(type, { protected: true })
    for (const command of [...changes, remove]) {
      const outcome = send(scene, type, command)
      t.equal(outcome.refused?.refused, 'blueprint_resource_protected', command[0])
      t.match(outcome.refused?.details, {
        resource_type: type,
        key: 'k',
        resource_id: 'x_1',
        ...desk,
      })
      t.equal(
        refused(scene, type, command, claim(type, { protected: true })),
        undefined,
        `${command[0]} of its blueprint`,
      )
      t.equal(refused(scene, type, command, claim(type, other)), 'blueprint_owned_elsewhere')
      t.equal(refused(created(type), type, command), undefined, 'without protection')
    }
  })
  t.test(`${type}: a change binds the resource in the same decision`, async (t) => {
    for (const command of changes) {
      const adopted = send(unbound(type), type, command, claim(type, { delete_on_destroy: false }))
      t.match(adopted.events.at(-1), {
        type: 'blueprint.bound',
        binding: { delete_on_destroy: false },
      })
      t.notOk(typesOf(send(unbound(type), type, command)).includes('blueprint.bound'))
      const scene = created(type)
      const changed = send(scene, type, command, claim(type, { blueprint_version: '2' }))
      t.ok(changed.events.length > 1, 'the change itself')
      t.match(changed.events.at(-1), {
        type: 'blueprint.bound',
        binding: { blueprint_version: '2' },
      })
      const same = send(scene, type, command, claim(type))
      t.notOk(typesOf(same).includes('blueprint.bound'), 'an equal binding is not stored again')
    }
  })
  t.test(`${type}: a plan holds for one version of the record`, async (t) => {
    const scene = created(type)
    const version = known(scene, type)?.updated_at ?? ''
    for (const command of [...changes, remove]) {
      t.equal(refused(scene, type, command, claim(type, {}, version), later), undefined)
      t.equal(
        refused(scene, type, command, claim(type, {}, '2001-01-01T00:00:00.000Z')),
        'blueprint_plan_outdated',
        command[0],
      )
    }
  })
  t.test(`${type}: a deletion ends the binding in the same decision`, async (t) => {
    for (const more of [{}, claim(type)]) {
      const scene = send(created(type), type, remove, more)
      t.match(scene.events.at(-1), {
        type: 'blueprint.unbound',
        resource_type: type,
        resource_id: 'x_1',
      })
      t.equal(known(scene, type)?.binding, undefined)
    }
    const free = send(unbound(type), type, remove)
    t.equal(free.refused, undefined)
    t.notOk(typesOf(free).includes('blueprint.unbound'), 'without a binding')
  })
  t.test(`${type}: commands that change only the binding`, async (t) => {
    const bind = (more: object) => ['blueprint.bind', { ...claim(type, more) }] as const
    const unbind = (more: object) =>
      ['blueprint.unbind', { resource_type: type, resource_id: 'x_1', ...desk, ...more }] as const
    const scene = created(type)
    const protects = send(scene, type, bind({ protected: true }))
    t.strictSame(typesOf(protects), ['blueprint.bound'])
    t.equal(known(protects, type)?.updated_at, known(scene, type)?.updated_at)
    t.strictSame(typesOf(send(scene, type, bind({}))), [], 'an equal binding')
    t.equal(refused(scene, type, bind(other)), 'blueprint_owned_elsewhere')
    t.equal(refused(holder(type), type, bind({})), 'not_found', 'without the resource')
    const free = send(protects, type, unbind({}))
    t.strictSame(typesOf(free), ['blueprint.unbound'])
    t.match(known(free, type), { id: 'x_1' })
    t.equal(known(free, type)?.binding, undefined)
    t.equal(refused(free, type, remove), undefined, 'the protection ends too')
    t.strictSame(typesOf(send(free, type, unbind({}))), [], 'again')
    t.strictSame(typesOf(send(scene, type, unbind(other))), [], 'of another blueprint')
  })
  t.test(`${type}: a journal without bindings folds`, async (t) => {
    const kinds = actorKinds({ brand: 'Service', timing: defaultTiming })
    const actor = kinds[resourceFacts[type].owner]
    const scene = created(type)
    const old = scene.history.filter((event) => !event.type.startsWith('blueprint.'))
    const folded = given(actor, ...old)
    t.match(known(folded, type), { id: 'x_1', type })
    t.equal(known(folded, type)?.binding, undefined)
    t.equal(refused(folded, type, remove), undefined)
    t.strictSame(
      known(given(actor, ...scene.history), type),
      known(scene, type),
      'and one with bindings',
    )
  })
}

t.test('a snapshot of a project without bindings is read', async (t) => {
  const actor = defineActor(projectActor({ brand: 'Service' }))
  const { managed: _, ...old } = created('skill').state as { managed?: unknown }
  const recovered = actor.recover?.(old as never, 0) as { managed: unknown }
  t.strictSame(recovered.managed, {})
})
t.test('an environment that is destroyed has no binding', async (t) => {
  const removed = send(created('environment'), 'environment', ['environment.remove', {}])
  t.ok(typesOf(removed).includes('environment.destroyed'), typesOf(removed).join(', '))
  t.equal((removed.state as { binding?: unknown }).binding, undefined)
})

for (const [type, list, name] of [
  ['toolkit', 'toolkit_ids', 'agent.assign_toolkits'],
  ['skill', 'skill_ids', 'agent.assign_skills'],
] as const)
  t.test(`a ${type} that a protected agent has`, async (t) => {
    const made = (protects: boolean) => {
      const scene = created('agent', { protected: protects, resource_id: 'agt_1' })
      return send(
        send(scene, type, commandsOf[type]?.create ?? ['', {}], claim(type)),
        'agent',
        [name, { id: 'agt_1', [list]: ['x_1'], held: [] }],
        claim('agent', { protected: protects, resource_id: 'agt_1' }),
      )
    }
    const remove = commandsOf[type]?.remove ?? ['', {}]
    t.match(send(made(true), type, remove).refused, {
      refused: 'blueprint_resource_protected',
      details: { resource_type: 'agent', resource_id: 'agt_1' },
    })
    t.equal(send(made(false), type, remove).refused, undefined)
    t.equal(send(made(true), type, remove, claim(type)).refused, undefined, 'by the blueprint')
    const unassigned = send(
      made(true),
      'agent',
      [name, { id: 'agt_1', [list]: [], held: [] }],
      claim('agent', { protected: true, resource_id: 'agt_1' }),
    )
    t.equal(send(unassigned, type, remove).refused, undefined, 'once no agent has it')
  })
