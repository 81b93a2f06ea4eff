/** The tab that lists the person's console sessions and can revoke them. */
import { useState } from 'preact/hooks'
import { type CallReply, call } from '../../api/client.ts'
import { useList } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { type Column, DataTable } from '../../design/data-table.tsx'
import { Listed } from '../../design/listed.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm } from '../../design/overlay.tsx'
import { Badge, Empty } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { signOut } from '../../shell/session.ts'
import { clientName } from './client-name.ts'
import { accountText as text } from './text.ts'

type Session = CallReply<'console_session.list'>['items'][number]

/** Lists the console sessions. One or all of them can be revoked. */
export function Sessions() {
  const list = useList('console_session.list', { limit: 100 })
  const [revoking, setRevoking] = useState<Session | 'all'>()
  const columns: readonly Column<Session>[] = [
    {
      name: text.client,
      cell: ({ client, current, id }) => (
        <>
          <strong class="user-text" title={client}>
            {client === undefined ? text.unknown : clientName(client)}
          </strong>{' '}
          {current && <Badge tone="good">{text.current}</Badge>}
          <div class="small soft mono user-text">{id}</div>
        </>
      ),
    },
    { name: text.address, cell: ({ address }) => <span class="mono">{address ?? '–'}</span> },
    { name: text.method, cell: ({ method }) => text[method] },
    { name: text.since, cell: ({ created_at }) => <Time at={created_at} /> },
    { name: text.lastUsed, cell: ({ last_used_at }) => <Time at={last_used_at} relative /> },
    { name: text.ends, cell: ({ idle_expires_at }) => <Time at={idle_expires_at} /> },
    {
      name: text.actions,
      cell: (session) => (
        <Button danger onClick={() => setRevoking(session)}>
          {text.revoke}
        </Button>
      ),
    },
  ]
  return (
    <div class="stack">
      <div class="row apart">
        <p class="soft">{text.sessionsHint}</p>
        <Button danger onClick={() => setRevoking('all')}>
          {text.revokeAll}
        </Button>
      </div>
      <Listed of={list} empty={<Empty icon="user" title={text.noSessions} />}>
        {(items) => (
          <DataTable label={text.sessions} columns={columns} items={items} keyOf={({ id }) => id} />
        )}
      </Listed>
      {revoking === 'all' && (
        <Confirm
          title={text.revokeAllTitle}
          action={text.revokeAll}
          danger
          onClose={() => setRevoking(undefined)}
          onConfirm={async () => {
            await call('console_session.revoke_all', {})
            await signOut()
          }}
        >
          <p>{text.revokeAllHint}</p>
        </Confirm>
      )}
      {revoking !== undefined && revoking !== 'all' && (
        <Confirm
          title={text.revokeTitle}
          action={text.revoke}
          danger
          onClose={() => setRevoking(undefined)}
          onConfirm={async () => {
            if (revoking.current) return signOut()
            await call('console_session.revoke', { id: revoking.id })
            showDone(text.revoked)
            list.reload()
          }}
        >
          <p>{revoking.current ? text.revokeOwn : text.revokeOther}</p>
        </Confirm>
      )}
    </div>
  )
}
