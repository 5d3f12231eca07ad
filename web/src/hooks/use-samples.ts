import { useMutation, useQueryClient } from "@tanstack/react-query";
import { call } from "@/api/http";

/** Load the documents that came with the program, or remove them and nothing else. */
export function useSamples() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (method: "POST" | "DELETE") => call(method, "api/v1/samples"),
    onSettled: () => {
      for (const key of ["libraries", "documents", "suggestions"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
}
