/** Finds the pages of records by their ids, for ids that a person pastes. Needs no browser. */
import { isId, type Prefix } from '../../protocol/ids.ts'

/** The pattern of the page for each kind of record. */
const pages = {
  run: '/p/:project/runs/:id',
  workflow: '/p/:project/workflows/:id',
  loop: '/p/:project/loops/:id',
  source_event: '/p/:project/events/:id',
  channel: '/p/:project/channels/:id',
  agent_session: '/p/:project/sessions/:id',
  agent: '/p/:project/agents/:id',
  table: '/p/:project/tables/:id',
  artifact: '/p/:project/artifacts/:id',
  environment: '/p/:project/environments/:id',
  webhook: '/p/:project/webhooks/:id',
} as const satisfies Partial<Record<Prefix, string>>

/** Returns the pattern of the page that shows the record with this id; undefined for other texts. */
export const pageOfId = (id: string): string | undefined =>
  (Object.keys(pages) as (keyof typeof pages)[])
    .filter((kind) => isId(id, kind))
    .map((kind) => pages[kind])[0]
