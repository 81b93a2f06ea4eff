/**
 * Stores and lists the toolkits and skills of projects and of the organization, and stores which
 * skills are assigned to which agents.
 */

import type { AgentCapabilitiesEvent } from '../../../protocol/agents/capabilities.ts'
import { parseTimestamp } from '../../../protocol/common.ts'
import type { Event, PlacedEntry } from '../../../protocol/entry.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { type Patch, patch } from '../../../protocol/patch.ts'
import type { Skill, SkillEvent } from '../../../protocol/skills/schema.ts'
import type { Toolkit, ToolkitEvent } from '../../../protocol/toolkits/schema.ts'
import type { Store } from '../../store.ts'

type ToolkitOrSkill = Toolkit | Skill
type Type = 'toolkit' | 'skill'
type RecordOf<T extends Type> = T extends 'toolkit' ? Toolkit : Skill

/** Applies the events of an entry of a project or of the organization. */
export function applyDefinitions(store: Store, { entry }: PlacedEntry): void {
  const project = store.numberOf(entry.project)
  for (const any of entry.events as readonly Event[]) {
    const event = any as
      | ToolkitEvent
      | SkillEvent
      | AgentCapabilitiesEvent
      | (Event & { readonly type: 'agent.deleted'; readonly id: string })
    switch (event.type) {
      case 'toolkit.created':
        put(store, project, 'toolkit', event.toolkit)
        break
      case 'skill.created':
        put(store, project, 'skill', event.skill)
        break
      case 'toolkit.updated':
        change(store, project, 'toolkit', event.id, event.toolkit)
        break
      case 'skill.updated':
        change(store, project, 'skill', event.id, event.skill)
        break
      case 'toolkit.deleted':
        remove(store, project, event.id)
        break
      case 'skill.deleted':
        remove(store, project, event.id)
        store.run('DELETE FROM skilled WHERE skill = ? AND project = ?', event.id, project)
        break
      case 'skills.assigned':
        store.run('DELETE FROM skilled WHERE agent = ? AND project = ?', event.id, project)
        for (const { id } of event.skills)
          store.run(
            'INSERT INTO skilled (skill, project, agent) VALUES (?, ?, ?)',
            id,
            project,
            event.id,
          )
        break
      case 'agent.deleted':
        store.run('DELETE FROM skilled WHERE agent = ? AND project = ?', event.id, project)
        break
    }
  }
}
const put = (store: Store, project: number, type: Type, record: ToolkitOrSkill) =>
  store.run(
    'INSERT OR REPLACE INTO definitions (id, project, type, created_at, record) VALUES (?, ?, ?, ?, ?)',
    record.id,
    project,
    type,
    parseTimestamp(record.created_at) ?? 0,
    JSON.stringify(record),
  )
const find = <T extends ToolkitOrSkill>(
  store: Store,
  project: number,
  type: Type,
  id: string,
): T | undefined => {
  const row = store.one<{ record: string }>(
    'SELECT record FROM definitions WHERE id = ? AND project = ? AND type = ?',
    id,
    project,
    type,
  )
  return row && (JSON.parse(row.record) as T)
}
function change<T extends ToolkitOrSkill>(
  store: Store,
  project: number,
  type: Type,
  id: string,
  set: Patch<T>,
): void {
  const record = find<T>(store, project, type, id)
  if (record) put(store, project, type, patch(record, set))
}
const remove = (store: Store, project: number, id: string) =>
  store.run('DELETE FROM definitions WHERE id = ? AND project = ?', id, project)

/** Returns all toolkits or skills of a project or of the organization, newest first. */
export const definitionList = <T extends Type>(
  store: Store,
  project: number,
  type: T,
): { items: RecordOf<T>[] } => ({
  items: store
    .all<{ record: string }>(
      'SELECT record FROM definitions WHERE project = ? AND type = ? ORDER BY created_at DESC, id DESC',
      project,
      type,
    )
    .map(({ record }) => JSON.parse(record) as RecordOf<T>),
})
/**
 * Returns a toolkit or a skill of a project or of the organization, or `not_found` if there is no
 * such record.
 */
export const definitionGet = <T extends Type>(
  store: Store,
  project: number,
  type: T,
  { id }: { readonly id: string },
): RecordOf<T> | Refusal =>
  find<RecordOf<T>>(store, project, type, id) ??
  refuse('not_found', { resource: type }, `There is no such ${type} here.`)
/**
 * Returns the projects of this partition whose agents have a skill, with the number of such agents.
 */
export const skillUsage = (
  store: Store,
  { id }: { readonly id: string },
): { items: { project_id: string; agent_count: number }[] } => ({
  items: store.all<{ project_id: string; agent_count: number }>(
    `SELECT projects.id AS project_id, count(*) AS agent_count
     FROM skilled
     JOIN projects ON projects.n = skilled.project
     WHERE skill = ?
     GROUP BY projects.id
     ORDER BY projects.id`,
    id,
  ),
})
