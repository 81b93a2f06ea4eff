/**
 * Handles of workflows, which the organization grants to projects. Invariants, for any order and
 * delay of messages: no handle is used in two projects, and no unused handle stays reserved.
 */
import fc from 'fast-check'
import t from 'tap'
import { organizationActor } from '../../../actors/projects/organization/organization.ts'
import { projectActor } from '../../../actors/projects/project.ts'
import type { ProjectDirectory } from '../../../protocol/access/directory.ts'
import { type Played, played } from '../support/played.ts'

const ORG = 'org_01AAAAAAAAAAAAAAAAAAAAAAAA'
const brand = 'Service'
const spec = { steps: [{ kind: 'sleep', config: { duration: '1s' } }] }

/**
 * Creates an organization with two projects, undelivered messages between them, and gateways that
 * stop halfway through creating a workflow.
 */
function world() {
  const org = played(organizationActor({ brand }), { project: ORG, kind: 'organization', id: ORG })
  org.send('organization.init', {
    name: 'Acme',
    project_id: 'prj_first',
    root_key: { id: 'key_1', hash: 'h', key_prefix: 'p' },
  })
  const ids = ['prj_first', org.send('project.create', { name: 'second' }).id] as const
  const projects = new Map(
    ids.map((id) => [id, played(projectActor({ brand }), { project: id, kind: 'project', id })]),
  )
  const projectAt = (id: string): Played => projects.get(id) ?? org
  /**
   * Undelivered messages, by sender and receiver. Messages of one pair keep their order, as the
   * host guarantees. Different pairs are independent.
   */
  const lines = new Map<string, { to: Played; name: string; input: unknown }[]>()
  const pending: { project: string; id: string; handle: string }[] = []
  let n = 0
  const collect = (from: string, actor: Played) => {
    for (const effect of actor.effects)
      if ('tell' in effect) {
        const { to, name, input } = effect.tell
        const line = `${from}>${to.id}`
        lines.set(line, [
          ...(lines.get(line) ?? []),
          { to: to.kind === 'organization' ? org : projectAt(to.id), name, input },
        ])
      }
  }
  const idOf = (actor: Played): string => [...projects].find(([, p]) => p === actor)?.[0] ?? ORG
  const deliver = (k: number) => {
    const waiting = [...lines.values()].filter((line) => line.length > 0)
    const message = waiting[k % waiting.length]?.shift()
    if (!message) return
    message.to.send(message.name, message.input)
    collect(idOf(message.to), message.to)
  }
  const handlesOf = (id: string): string[] =>
    Object.values(projectAt(id).ask<ProjectDirectory>('directory', { id }).workflows).map(
      ({ handle }) => handle,
    )
  return {
    reserve(p: 0 | 1, handle: string) {
      const project = ids[p]
      const id = `wfd_${++n}`
      if (org.send('handle.reserve', { id, handle, project }) === undefined)
        pending.push({ project, id, handle })
    },
    create(k: number) {
      const [step] = pending.splice(k % Math.max(1, pending.length), 1)
      if (step)
        projectAt(step.project).send('workflow.create', {
          name: 'x',
          spec,
          reserved: { id: step.id, handle: step.handle, organization: ORG },
        })
    },
    delete(p: 0 | 1, k: number) {
      const project = projectAt(ids[p])
      const all = Object.keys(project.ask<ProjectDirectory>('directory', { id: ids[p] }).workflows)
      if (all.length === 0) return
      project.send('workflow.delete', { id: all[k % all.length] })
      collect(ids[p], project)
    },
    deliver,
    pass(seconds: number) {
      for (const actor of [org, ...projects.values()]) actor.at += seconds * 1000
      const due = org.deadline()
      if (due === undefined || due > org.at) return
      org.send('wake')
      collect(ORG, org)
    },
    twice: (): string[] => handlesOf(ids[0]).filter((handle) => handlesOf(ids[1]).includes(handle)),
    settle() {
      this.pass(61)
      while ([...lines.values()].some((line) => line.length > 0)) deliver(0)
    },
    /** Whether the organization would grant the handle to every project at this moment. */
    free: (handle: string): boolean =>
      ids.every((project) => {
        const id = `try_${++n}`
        const granted = org.send('handle.reserve', { id, handle, project }) === undefined
        org.send('handle.release', { id })
        return granted
      }),
    used: (handle: string): boolean => ids.some((id) => handlesOf(id).includes(handle)),
  }
}

const handle = fc.constantFrom('a', 'b')
const side = fc.constantFrom(0 as const, 1 as const)
const k = fc.nat(20)
const step = fc.oneof(
  fc.record({ do: fc.constant('reserve' as const), side, handle }),
  fc.record({ do: fc.constant('create' as const), k }),
  fc.record({ do: fc.constant('delete' as const), side, k }),
  fc.record({ do: fc.constant('deliver' as const), k }),
  fc.record({ do: fc.constant('pass' as const), seconds: fc.integer({ min: 1, max: 90 }) }),
)

t.test(
  'no two projects ever have a workflow with the same handle, and no handle stays blocked',
  async () => {
    void fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const it = world()
        for (const s of steps) {
          if (s.do === 'reserve') it.reserve(s.side, s.handle)
          else if (s.do === 'create') it.create(s.k)
          else if (s.do === 'delete') it.delete(s.side, s.k)
          else if (s.do === 'deliver') it.deliver(s.k)
          else it.pass(s.seconds)
          if (it.twice().length > 0) return false
        }
        it.settle()
        for (const name of ['a', 'b']) if (it.free(name) === it.used(name)) return false
        // Gateways resume creations after their reservations have expired.
        for (let i = 0; i < 40; i++) it.create(i)
        return it.twice().length === 0
      }),
      { numRuns: 300 },
    )
  },
)
