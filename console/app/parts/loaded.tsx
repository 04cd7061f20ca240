/** The four states of a read: loading, loaded, failed, and loaded but stale. */
import type { ComponentChildren } from "preact";
import { isRefusal, NoAnswer } from "../api/request.ts";
import type { Loaded } from "../api/use-get.ts";
import { useTexts } from "../texts/index.ts";

interface AwaitProps<T> {
  readonly of: Loaded<T>;
  readonly children: (data: T) => ComponentChildren;
}

export function Await<T>({ of, children }: AwaitProps<T>) {
  const { data, error, isPending, refetch } = of;
  if (data !== undefined) {
    return (
      <>
        {error && <StaleBanner error={error} retry={() => void refetch()} />}
        {children(data)}
      </>
    );
  }
  if (isPending) return <Skeleton />;
  return <Failure error={error} retry={() => void refetch()} />;
}

function Skeleton() {
  const t = useTexts();
  return (
    <div class="skeleton" role="status" aria-label={t.loading}>
      <span />
      <span />
      <span />
    </div>
  );
}

/** The rows stay where they are, and so do the filters. */
function StaleBanner({ error, retry }: { readonly error: Error; readonly retry: () => void }) {
  const t = useTexts();
  return (
    <p class="banner warn" role="status">
      {t.stale(useErrorText(error))}
      <button type="button" class="quiet small" onClick={retry}>
        {t.tryAgain}
      </button>
    </p>
  );
}

function Failure({ error, retry }: { readonly error: Error | null; readonly retry: () => void }) {
  const t = useTexts();
  const text = useErrorText(error);
  return (
    <div class="failure" role="alert">
      <p>{text}</p>
      {!isRefusal(error, 403, 404) && (
        <button type="button" onClick={retry}>
          {t.tryAgain}
        </button>
      )}
    </div>
  );
}

export function useErrorText(error: Error | null | undefined): string {
  const t = useTexts();
  if (error instanceof NoAnswer) return t.noAnswer;
  if (isRefusal(error, 403)) return error.code === "forbidden" ? t.forbidden(error.message) : error.message;
  if (isRefusal(error, 404)) return t.notFound(error.message);
  if (isRefusal(error, 503)) return t.unavailable(error.message);
  return error?.message ?? t.noAnswer;
}
