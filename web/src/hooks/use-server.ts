import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { live } from "@/api/queries";

/** True while the server answers; when it comes back, everything that is shown is asked for again. */
export function useServer(): { away: boolean } {
  const client = useQueryClient();
  const { isError } = useQuery(live);
  const wasAway = useRef(false);
  useEffect(() => {
    if (isError) {
      wasAway.current = true;
    } else if (wasAway.current) {
      wasAway.current = false;
      void client.invalidateQueries({ predicate: (query) => query.queryKey[0] !== "live" });
    }
  }, [isError, client]);
  return { away: isError };
}
