/** The logs of the worker of an environment. Following reads the log again, as the API has no stream. */
import { useEffect, useState } from 'preact/hooks'
import { useQuery } from '../../api/query.ts'
import { Button, IconButton } from '../../design/button.tsx'
import { SelectField } from '../../design/field.tsx'
import { Empty, Notice, Show } from '../../design/states.tsx'
import { Lines } from '../../preview/lines.tsx'
import { place, setQuery } from '../../router/router.ts'
import { environmentsText as text } from './text.ts'

const NAMES = ['worker', 'stdout', 'stderr', 'bootstrap'] as const
const COUNTS = ['200', '1000', '5000']
/** Milliseconds between two reads of a log that is followed, as on the command line. */
const INTERVAL = 2000

export function LogsPart({ project, id }: { readonly project: string; readonly id: string }) {
  const { query } = place.value
  const log_name = NAMES.find((one) => one === query.get('log')) ?? 'worker'
  const tail = COUNTS.find((one) => one === query.get('lines')) ?? '200'
  const [follow, setFollow] = useState(false)
  const { state, reload } = useQuery(
    'environment.worker_logs',
    { project, environment_id: id, log_name, tail: Number(tail), max_bytes: 128_000 },
    { kinds: ['environment'], id },
  )
  const { loading } = state.value
  useEffect(() => {
    if (!follow || loading) return
    const later = setTimeout(() => document.visibilityState === 'visible' && reload(), INTERVAL)
    document.addEventListener('visibilitychange', reload)
    return () => {
      clearTimeout(later)
      document.removeEventListener('visibilitychange', reload)
    }
  }, [follow, loading, log_name, tail])
  return (
    <div class="stack close">
      <div class="row filters">
        <SelectField
          label={text.log}
          unlabelled
          value={log_name}
          choices={NAMES.map((value) => ({ value, label: value }))}
          onValue={(log) => setQuery({ log: log === 'worker' ? '' : log })}
        />
        <SelectField
          label={text.logLines}
          unlabelled
          value={tail}
          choices={COUNTS.map((value) => ({ value, label: `${value} ${text.logLines}` }))}
          onValue={(lines) => setQuery({ lines: lines === '200' ? '' : lines })}
        />
        <Button pressed={follow} onClick={() => setFollow(!follow)}>
          {text.follow}
        </Button>
        <IconButton icon="reload" label={text.reload} onClick={reload} />
      </div>
      <Show of={state.value} retry={reload}>
        {({ content, truncated }) =>
          content === '' ? (
            <section class="card">
              <Empty title={text.logEmpty} />
            </section>
          ) : (
            <>
              {truncated && <Notice>{text.logCut}</Notice>}
              <Lines value={content} label={text.wrap} end />
            </>
          )
        }
      </Show>
    </div>
  )
}
