import type { RunDetail } from '../data/live-run.ts'
import {
  AgainDialog,
  CancelDialog,
  CompareDialog,
  type DialogProps,
  ResumeDialog,
  RetryDialog,
  SignalDialog,
  type StepLabel,
} from './dialogs.tsx'

/** The dialog that is open on the page of a run. */
export type RunDialog =
  | { readonly kind: 'cancel' | 'resume' | 'again' | 'compare' | 'complete' }
  | { readonly kind: 'retry'; readonly from: string }
  | { readonly kind: 'signal'; readonly name: string }

/**
 * Shows a dialog.
 * @param props.reached the steps from which the run can be retried.
 * @param props.suspended the steps that can be completed.
 */
export function OpenDialog({
  dialog,
  detail,
  reached,
  suspended,
  ...shared
}: DialogProps & {
  readonly dialog: RunDialog
  readonly detail: RunDetail
  readonly reached: readonly StepLabel[]
  readonly suspended: readonly StepLabel[]
}) {
  switch (dialog.kind) {
    case 'cancel':
      return <CancelDialog {...shared} />
    case 'resume':
      return <ResumeDialog {...shared} />
    case 'again':
      return <AgainDialog {...shared} detail={detail} />
    case 'compare':
      return <CompareDialog {...shared} />
    case 'complete':
      return <SignalDialog {...shared} name="" steps={suspended} />
    case 'signal':
      return <SignalDialog {...shared} name={dialog.name} />
    case 'retry':
      return <RetryDialog {...shared} detail={detail} from={dialog.from} steps={reached} />
  }
}
