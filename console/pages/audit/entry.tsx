/** The dialog with all details of an audit entry. */

import type { AuditEntry } from '../../../protocol/projects/rows.ts'
import { Button } from '../../design/button.tsx'
import { CopyButton } from '../../design/copy.tsx'
import { Dialog } from '../../design/overlay.tsx'
import { designText } from '../../design/text.ts'
import { Time } from '../../design/time.tsx'
import { Tree } from '../../design/tree.tsx'
import { setQuery } from '../../router/router.ts'
import { changeRows } from './changes.ts'
import { auditText as text } from './text.ts'

function Fact({ name, value }: { readonly name: string; readonly value: string | undefined }) {
  return value === undefined ? null : (
    <>
      <dt>{name}</dt>
      <dd class="user-text">
        {value} <CopyButton value={value} />
      </dd>
    </>
  )
}

const Shown = ({ value }: { readonly value: unknown }) =>
  value === undefined ? (
    <span class="soft">–</span>
  ) : typeof value === 'object' && value !== null ? (
    <Tree value={value} />
  ) : (
    <span class="user-text">{String(value)}</span>
  )

function Changes({ of }: { readonly of: AuditEntry['changes'] }) {
  const rows = changeRows(of)
  if (of === undefined || Object.keys(of).length === 0) return <p class="soft">{text.noChanges}</p>
  if (!rows) return <Tree value={of} open={2} />
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be focusable
    <section class="table-frame" aria-label={text.changes} tabIndex={0}>
      <table class="table">
        <thead>
          <tr>
            <th scope="col">{text.attribute}</th>
            <th scope="col">{text.before}</th>
            <th scope="col">{text.after}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, from, to }) => (
            <tr key={name}>
              <td class="mono user-text">{name}</td>
              <td>
                <Shown value={from} />
              </td>
              <td>
                <Shown value={to} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/**
 * Shows the entry. Buttons open the adjacent entries, or filter the log by the resource or the
 * actor of this entry.
 */
export function Entry({
  of,
  actorName,
  previous,
  next,
  onClose,
}: {
  readonly of: AuditEntry
  readonly actorName: string
  /** Ids of the adjacent entries in the list. */
  readonly previous: string | undefined
  readonly next: string | undefined
  readonly onClose: () => void
}) {
  const only = (part: { resource?: string; actor?: string }) =>
    setQuery({ ...part, entry: undefined }, { push: true })
  return (
    <Dialog
      title={text.happened(of.resource_type, of.resource_name ?? '', text[of.action])}
      wide
      onClose={onClose}
    >
      <dl class="facts">
        <dt>{text.time}</dt>
        <dd>
          <Time at={of.created_at} />
        </dd>
        <Fact name={text.who} value={designText.detailed(actorName, of.actor_id)} />
        <Fact name={text.what} value={of.resource_id} />
        <Fact name={text.project} value={of.project_id} />
        <Fact
          name={text.credential}
          value={of.credential_type && `${of.credential_type} ${of.credential_id ?? ''}`}
        />
        <Fact name={text.address} value={of.ip_address} />
        <Fact name={text.client} value={of.user_agent} />
        <Fact name={text.request} value={of.request_id} />
        <Fact name={text.id} value={of.id} />
      </dl>
      <h3>{text.changes}</h3>
      <Changes of={of.changes} />
      <div class="actions">
        <Button icon="filter" onClick={() => only({ resource: of.resource_id })}>
          {text.onlyResource}
        </Button>
        <Button icon="filter" onClick={() => only({ actor: of.actor_id })}>
          {text.onlyActor}
        </Button>
        <Button disabled={previous === undefined} onClick={() => setQuery({ entry: previous })}>
          {text.previous}
        </Button>
        <Button disabled={next === undefined} onClick={() => setQuery({ entry: next })}>
          {text.next}
        </Button>
      </div>
    </Dialog>
  )
}
