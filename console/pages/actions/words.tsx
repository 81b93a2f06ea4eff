/** Words and marks for entries of the catalog of actions. */
import type { CallReply } from '../../api/client.ts'
import { Badge } from '../../design/states.tsx'
import { actionsText as text } from './text.ts'

/** An entry of the catalog. */
export type Entry = CallReply<'catalog.action'>

/** Words for what performs an action. */
export const kindWords: Readonly<Record<Entry['endpoint_kind'], string>> = {
  http: text.http,
  worker: text.worker,
  builtin: text.builtin,
}
/** Words for what defines an action. */
export const scopeWords: Readonly<Record<Entry['definition_scope'], string>> = {
  project: text.project,
  organization: text.organization,
  platform: text.platform,
}

/** Whether an action can be called, and the properties that its definition declares. */
export const Marks = ({ entry }: { readonly entry: Entry }) => (
  <>
    {entry.readiness === 'ready' ? (
      <Badge tone="good">{text.ready}</Badge>
    ) : (
      <Badge tone="warn">
        {text.notReady}
        {entry.readiness_reason && `: ${entry.readiness_reason.replaceAll('_', ' ')}`}
      </Badge>
    )}
    {entry.annotations.read_only && <Badge>{text.readOnly}</Badge>}
    {entry.annotations.idempotent && <Badge>{text.idempotent}</Badge>}
    {entry.annotations.destructive && <Badge tone="bad">{text.destructive}</Badge>}
  </>
)
