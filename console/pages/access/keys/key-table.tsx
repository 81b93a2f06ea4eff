/** A table of API keys or personal tokens. Revocation asks for confirmation. */
import { useState } from 'preact/hooks'
import type { ApiKey } from '../../../../protocol/access/rows.ts'
import { Button } from '../../../design/button.tsx'
import { type Column, DataTable } from '../../../design/data-table.tsx'
import { showDone } from '../../../design/notify.ts'
import { Confirm } from '../../../design/overlay.tsx'
import { Badge } from '../../../design/states.tsx'
import { now, Time } from '../../../design/time.tsx'
import { accessText as text } from '../text.ts'

const Expiry = ({ at }: { readonly at: string | undefined }) => {
  if (at === undefined) return <span class="soft">{text.never}</span>
  return Date.parse(at) <= now.value ? <Badge tone="bad">{text.ended}</Badge> : <Time at={at} />
}

/**
 * Shows keys or tokens with their prefix, last use and expiry.
 * @param further additional columns, shown after the name.
 * @param revoke revokes a key; absent if the person may not revoke keys.
 */
export function KeyTable({
  label,
  items,
  further = [],
  revoke,
}: {
  readonly label: string
  readonly items: readonly ApiKey[]
  readonly further?: readonly Column<ApiKey>[]
  readonly revoke?: (key: ApiKey) => Promise<unknown>
}) {
  const [revoking, setRevoking] = useState<ApiKey>()
  const columns: readonly Column<ApiKey>[] = [
    {
      name: text.name,
      cell: ({ name, id }) => (
        <>
          <strong class="user-text">{name}</strong>
          <div class="small soft mono user-text">{id}</div>
        </>
      ),
    },
    ...further,
    { name: text.prefix, cell: ({ key_prefix }) => <span class="mono">{key_prefix}…</span> },
    { name: text.created, cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: text.lastUsed,
      cell: ({ last_used_at: at }) =>
        at ? <Time at={at} relative /> : <span class="soft">{text.unused}</span>,
    },
    { name: text.expires, cell: ({ expires_at }) => <Expiry at={expires_at} /> },
    ...(revoke
      ? [
          {
            name: text.actions,
            cell: (key: ApiKey) => (
              <Button danger title={text.revokeTitle(key.name)} onClick={() => setRevoking(key)}>
                {text.revoke}
              </Button>
            ),
          },
        ]
      : []),
  ]
  return (
    <>
      <DataTable label={label} columns={columns} items={items} keyOf={({ id }) => id} />
      {revoking && (
        <Confirm
          title={text.revokeTitle(revoking.name)}
          action={text.revoke}
          danger
          onClose={() => setRevoking(undefined)}
          onConfirm={async () => {
            await revoke?.(revoking)
            showDone(text.revoked)
          }}
        >
          <p>{text.revokeHint}</p>
        </Confirm>
      )}
    </>
  )
}
