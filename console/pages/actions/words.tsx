/** Labels and badges for entries of the catalog of actions. */
import type { CallReply } from '../../api/client.ts'
import { Badge } from '../../design/states.tsx'
import { actionsText as text } from './text.ts'

/** An action in the catalog, including built-in ones and those of the organization. */
export type Entry = CallReply<'catalog.action'>

/** Labels of the endpoint kinds. */
export const kindWords: Readonly<Record<Entry['endpoint_kind'], string>> = {
  http: text.http,
  worker: text.worker,
  builtin: text.builtin,
}
/** Labels of the definition scopes. */
export const scopeWords: Readonly<Record<Entry['definition_scope'], string>> = {
  project: text.project,
  organization: text.organization,
  platform: text.platform,
}

/** Badges for the readiness of an action and for its declared annotations. */
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
