/** Nodes, shards, partitions and streams of the installation, for operators. */
import { useEffect } from 'preact/hooks'
import type { CallReply } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { type Column, DataTable } from '../../design/data-table.tsx'
import { Badge, Notice, Show } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { Page } from '../../shell/page.tsx'
import { formatBytes, formatNumber } from '../../text/format.ts'
import { organizationText as text } from './text.ts'

type Cluster = CallReply<'cluster.get'>

/** Refresh interval. The page polls, because no stream reports changes to the installation. */
const REFRESH_MS = 5000

const nodeColumns: readonly Column<Cluster['nodes'][number]>[] = [
  { name: text.node, cell: ({ id }) => <span class="mono">{id}</span> },
  { name: text.roles, cell: ({ roles }) => roles.join(', ') },
  { name: text.shards, number: true, cell: ({ shards }) => formatNumber(shards) },
  { name: text.version, cell: ({ version }) => version ?? '–' },
  { name: text.host, cell: ({ host, pid }) => (host ? `${host} (${pid ?? '–'})` : '–') },
  { name: text.since, cell: ({ started_at: at }) => (at ? <Time at={at} relative /> : '–') },
  {
    name: text.seen,
    cell: ({ seen_ms_ago, stops }) =>
      stops.length > 0 ? <Badge tone="bad">{stops.join(', ')}</Badge> : text.ago(seen_ms_ago),
  },
]
const shardColumns: readonly Column<Cluster['shards'][number]>[] = [
  { name: text.shard, cell: ({ partition, shard }) => `${partition}.${shard}` },
  {
    name: text.owner,
    cell: ({ owner }) =>
      owner ? <span class="mono">{owner}</span> : <Badge tone="bad">{text.noOwner}</Badge>,
  },
  { name: text.epoch, number: true, cell: ({ epoch }) => formatNumber(epoch) },
]
const count = (value: number | undefined): string =>
  value === undefined ? '–' : formatNumber(value)
const partitionColumns: readonly Column<Cluster['partitions'][number]>[] = [
  { name: text.partition, number: true, cell: ({ partition }) => partition },
  { name: text.journal, number: true, cell: ({ last_sequence }) => count(last_sequence) },
  { name: text.view, number: true, cell: ({ view_sequence }) => count(view_sequence) },
  { name: text.lag, number: true, cell: ({ view_lag }) => count(view_lag) },
]
const streamColumns: readonly Column<Cluster['nats']['streams'][number]>[] = [
  { name: text.stream, cell: ({ name }) => <span class="mono">{name}</span> },
  { name: text.messages, number: true, cell: ({ messages }) => formatNumber(messages) },
  { name: text.size, number: true, cell: ({ bytes }) => formatBytes(bytes) },
  { name: text.replicas, number: true, cell: ({ replicas }) => replicas },
  { name: text.leader, cell: ({ leader }) => leader ?? '–' },
  {
    name: text.followers,
    cell: ({ followers }) =>
      followers.map(({ server, offline, lag }) => (
        <div key={server}>
          {server}{' '}
          {offline ? (
            <Badge tone="bad">{text.offline}</Badge>
          ) : (
            <span class="soft">{formatNumber(lag)}</span>
          )}
        </div>
      )),
  },
]

export default function ClusterPage() {
  const { state, reload } = useQuery('cluster.get', {})
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') reload()
    }, REFRESH_MS)
    return () => clearInterval(timer)
  }, [])
  return (
    <Page
      title={text.cluster}
      actions={
        <Button icon="reload" onClick={reload}>
          {text.refresh}
        </Button>
      }
    >
      <Show of={state.value} retry={reload} lines={8}>
        {({ generated_at, nodes, shards, partitions, nats, storage, faults }) => (
          <>
            <p class="soft small">
              {text.at} <Time at={generated_at} />
            </p>
            {storage.stops.length > 0 && (
              <Notice tone="bad">
                {text.stopped}: {storage.stops.join(', ')}
              </Notice>
            )}
            {storage.warnings.map((warning) => (
              <Notice key={warning} tone="warn">
                {warning}
              </Notice>
            ))}
            {faults.length > 0 && (
              <Notice tone="warn">
                {text.faults}: {faults.join(', ')}
              </Notice>
            )}
            <h2>{text.nodes}</h2>
            <DataTable
              label={text.nodes}
              columns={nodeColumns}
              items={nodes}
              keyOf={({ id }) => id}
            />
            <div class="pair">
              <section class="stack close">
                <h2>{text.shards}</h2>
                <DataTable
                  label={text.shards}
                  columns={shardColumns}
                  items={shards}
                  keyOf={({ partition, shard }) => `${partition}.${shard}`}
                />
              </section>
              <section class="stack close">
                <h2>{text.partitions}</h2>
                <DataTable
                  label={text.partitions}
                  columns={partitionColumns}
                  items={partitions}
                  keyOf={({ partition }) => String(partition)}
                />
              </section>
            </div>
            <h2>{text.streams}</h2>
            <DataTable
              label={text.streams}
              columns={streamColumns}
              items={nats.streams}
              keyOf={({ name }) => name}
            />
          </>
        )}
      </Show>
    </Page>
  )
}
